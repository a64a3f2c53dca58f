"""Whole commands against what they can't be faster than: importing torch, importing typer.

    python benchmarks/commands.py [RUNS]

Each command and its yardstick run in turn, A B A B …, because the speed of a machine drifts; printed are the medians
and the median of the ratios, pair by pair. The targets are those of the design: a ratio above one is marked.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

PYTHON = sys.executable
LAB = [PYTHON, "-c", "import sys; from cli.main import main; sys.exit(main())"]
# an installed package has its byte code; without this one ours would be compiled anew each time, and torch's not
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
COMMANDS: tuple[tuple[str, Sequence[str], str, float], ...] = (
    ("lab --help", ("--help",), "import typer", 2.0),
    ("lab list", ("list",), "import typer", 2.0),
    ("lab run lora", ("run", "lora", "-q"), "import torch", 1.15),
    ("lab run", ("run", "-q"), "import torch", 2.5),
)


def seconds(command: Sequence[str]) -> float:
    """Wall time of one command; raises CalledProcessError when it fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
    return time.perf_counter() - began


def pairs(command: Sequence[str], yardstick: Sequence[str], runs: int) -> list[tuple[float, float]]:
    """`runs` pairs of times after one pair that is not counted."""
    return [(seconds(command), seconds(yardstick)) for _ in range(runs + 1)][1:]


def main(runs: int) -> None:
    """Print one line a command."""
    print(f"{'command':<14} {'median s':>9} {'yardstick':>14} {'median s':>9} {'ratio':>7} {'target':>7}")
    with tempfile.TemporaryDirectory() as out:
        for name, arguments, yardstick, target in COMMANDS:
            where = ["--out", out] if arguments[0] == "run" else []
            found = pairs([*LAB, *arguments, *where], [PYTHON, "-c", yardstick], runs)
            mine, theirs = (statistics.median(side) for side in zip(*found, strict=True))
            ratio = statistics.median(a / b for a, b in found)
            mark = "" if ratio <= target else "  over"
            print(f"{name:<14} {mine:>9.3f} {yardstick:>14} {theirs:>9.3f} {ratio:>6.2f}x {target:>6.2f}x{mark}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
