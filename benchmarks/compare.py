"""Speed of `compare`, all statistics: GB/s of both arrays' bytes together, and time as a ratio to numpy.allclose.

Run as `python benchmarks/compare.py`. Medians of processor time, because the clock on the
wall also measures whatever else the machine does; one thread.
"""

import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labs.core.compare import compare

SIZES = (20, 10_000, 100_000, 1_000_000, 20_000_000)
REPEATS = 7
ENOUGH = 0.05  # seconds a repeat should last at least


def seconds(call: Callable[[], object]) -> float:
    """Median processor time of one call."""
    timer = timeit.Timer(call, timer=time.process_time)
    number = max(1, int(ENOUGH / max(timer.timeit(1), 1e-7)))
    return statistics.median(timer.repeat(REPEATS, number)) / number


def main() -> None:
    """Print one line a size."""
    for size in SIZES:
        reference = np.random.default_rng(size).normal(size=size)
        observed = reference * (1 + 1e-15)
        ours = seconds(lambda a=reference, b=observed: compare(a, b, 1e-9, 1e-8))  # type: ignore[misc]
        theirs = seconds(lambda a=reference, b=observed: np.allclose(a, b))  # type: ignore[misc]
        rate = 2 * reference.nbytes / ours / 1e9
        print(f"{size:>10,} elements  {ours * 1e6:>10.1f} µs  {rate:6.2f} GB/s  {ours / theirs:5.2f}x np.allclose")


if __name__ == "__main__":
    main()
