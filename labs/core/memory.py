"""Memory is estimated before it is taken: a config that can't fit is refused with the estimate."""

from pathlib import Path

from labs.core.errors import RequestError

GIB = 1 << 30


def require(name: str, estimate: int) -> None:
    """Raise RequestError when `estimate` bytes (both processes together) are more than the machine has left."""
    available = available_bytes()
    if available is not None and estimate > available:
        needs, left = estimate / GIB, available / GIB
        raise RequestError(f"{name}: needs about {needs:.1f} GiB of memory, {left:.1f} GiB are available")


def available_bytes(root: Path = Path("/")) -> int | None:
    """What the kernel and the cgroup leave us, in bytes; None where neither says so."""
    limits = [limit for limit in (_kernel(root), _cgroup(root)) if limit is not None]
    return min(limits, default=None)


def _kernel(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return found[0] if found else None


def _cgroup(root: Path) -> int | None:
    folder = root / "sys/fs/cgroup"
    try:
        limit, used = (folder / "memory.max").read_text(), (folder / "memory.current").read_text()
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.strip().isdigit() else None
