"""What can be set in the rules lab: nothing about the numbers, which are in table.py."""

from dataclasses import dataclass
from typing import Literal

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Which part of the table is computed."""

    theme: Literal["all", "layers", "training", "labels", "losses", "lora", "ranks"] = setting(
        "all", "part of the table that is computed"
    )
