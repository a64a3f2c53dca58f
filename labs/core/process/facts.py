"""Facts about the process that asks: what moves last bits more than a torch release does.

Standard library and NumPy only, Python 3.10 syntax: the referee and the framework process both report these.
"""

import os
import platform
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
)


def facts() -> dict[str, Any]:
    """Versions, CPU, BLAS, threads, telling environment variables and the operating system, ready for JSON."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "numpy": np.__version__,
        "blas": _blas(),
        "simd": _build("SIMD Extensions", "found"),
        "cpu": _cpu(),
        "threads": {"cpus": os.cpu_count() or 1, "usable": usable_cpus()},
        "variables": {name: os.environ.get(name) for name in _VARIABLES},
        "os": _system(),
    }


def usable_cpus() -> int:
    """CPUs that this process may run on (a container's share, where the system tells)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas() -> dict[str, str]:
    found = _build("Build Dependencies", "blas") or {}
    kept = ("name", "version", "openblas configuration")
    return {key: str(found[key]) for key in kept if key in found}


def _build(section: str, key: str) -> Any:
    try:
        config: Any = np.show_config(mode="dicts")
    except (TypeError, AttributeError):  # NumPy before 1.25 only prints
        return None
    return (config or {}).get(section, {}).get(key)


def _cpu() -> dict[str, Any]:
    """Model and instruction set; only the first block of /proc/cpuinfo, since every further core costs time."""
    if sys.platform == "darwin":
        return {"model": _sysctl("machdep.cpu.brand_string"), "flags": []}
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            pairs = [line.partition(":") for line in takewhile(str.strip, file)]
    except OSError:
        return {"model": platform.machine(), "flags": []}
    block = {key.strip(): value.strip() for key, _, value in pairs}
    flags = block.get("flags") or block.get("Features") or ""
    return {"model": block.get("model name", platform.machine()), "flags": sorted(flags.split())}


def _sysctl(name: str) -> str:
    import subprocess  # noqa: PLC0415 - slow to import and needed on one system only

    try:
        done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return platform.machine()
    return done.stdout.strip() or platform.machine()


def _system() -> dict[str, str]:
    name = os.uname()
    libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
    return {"system": name.sysname, "release": name.release, "machine": name.machine, "libc": libc or ""}
