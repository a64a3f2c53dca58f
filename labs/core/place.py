"""Where a stage runs: what every stage of every lab gets as its last argument.

Standard library only, Python 3.10 syntax: imported in the framework process.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Rank and folders of one stage.

    rank: 0 … ranks-1; ranks: how many processes run this stage together (a gloo group exists when more than one).
    scratch: a folder that later stages of the same run see too; checkpoints: one whose files are kept in the bundle.
    """

    rank: int
    ranks: int
    scratch: Path
    checkpoints: Path
