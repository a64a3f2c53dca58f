"""What a run depended on beside its config: both processes, this tool and its commit, the command line.

Compared first when two runs differ: instruction set, threads and BLAS move more last bits than a torch release does.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from labs.core.process.facts import facts

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 5.0  # seconds for git to answer, on a slow network disk


def environment(command: Sequence[str], framework: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of environment.json; `framework` is what the framework process said of itself when it was ready."""
    return {
        "tool": {"version": tool_version(), "commit": commit(ROOT)},
        "command": list(command),
        "referee": facts(),
        "framework": dict(framework),
    }


def tool_version() -> str | None:
    """The installed version of framework-lab; None in a checkout that was never installed."""
    try:
        return version("framework-lab")
    except PackageNotFoundError:
        return None


def commit(root: Path) -> str | None:
    """The commit that is checked out at `root`, with "-dirty" behind it when files differ; None where there is none."""
    if not (root / ".git").exists():  # a wheel inside some other project's checkout is not that project
        return None
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # set inside git hooks
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=plain)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
