"""How an interpreter is started as a framework process. Standard library only, Python 3.10 syntax.

The `-c` line says hello first, so that a program that is no Python can be told from a Python that has no torch, then
registers the `labs` package by its folder: nothing else of the referee's environment becomes importable there.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing and collections.abc are slow to import, and the start of the process waits for this
if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = os.path.abspath(__file__)  # noqa: PTH100 - pathlib is slow to import
LABS = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))  # noqa: PTH120

_BOOT = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]  # the current folder must not shadow torch
import os
os.write(int(sys.argv[2]), ('{"hello": [%d, %d]}\\n' % sys.version_info[:2]).encode())
import importlib.util
spec = importlib.util.spec_from_file_location(
    'labs', os.path.join(sys.argv[1], '__init__.py'), submodule_search_locations=[sys.argv[1]])
sys.modules['labs'] = labs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(labs)
from labs.core.worker import main
main(*sys.argv[2:])
"""

_REFEREE_ONLY = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_LAUNCHER = {  # what torchrun and its like tell a process about the group that it is in
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME",
    "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
}  # fmt: skip


def command(python: str, answers: int, scratch: str, mode: str) -> list[str]:
    """The command line of a framework process. mode: see `labs.core.worker.main`."""
    return [python, "-c", _BOOT, LABS, str(answers), scratch, mode]


def environment(variables: Mapping[str, str], *, foreign: bool) -> dict[str, str]:
    """The environment of a framework process: ours with `variables` laid over it, and gloo on the loopback interface.

    A foreign interpreter does not see this one's paths. Ranks are started here, so nothing that a launcher told this
    process of its own group is passed on (docs/decisions/0018-launchers.md).
    """
    kept = {name: value for name, value in os.environ.items() if not _is_launchers(name)}
    for name in _REFEREE_ONLY if foreign else ():
        kept.pop(name, None)
    return {**kept, "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo", **variables}


def _is_launchers(name: str) -> bool:
    return name in _LAUNCHER or name.startswith("TORCHELASTIC_")
