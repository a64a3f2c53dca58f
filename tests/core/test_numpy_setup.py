import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEN = """
from labs.core.numpy_setup import set_up
set_up()
import os
import numpy as np
print(os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("NUMPY_MADVISE_HUGEPAGE"))
np.ones((600, 600)) @ np.ones((600, 600))
print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1)
"""


def seen(**variables):
    """What a new process has in its environment after it was set up, and how many threads a product took."""
    kept = {n: v for n, v in os.environ.items() if n not in ("OPENBLAS_NUM_THREADS", "NUMPY_MADVISE_HUGEPAGE")}
    done = subprocess.run(
        [sys.executable, "-c", SEEN], env=kept | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_products_take_one_thread_and_later_processes_do_not_hear_of_it():
    assert seen() == ["None", "None", "1"]


def test_what_the_user_says_counts():
    assert seen(OPENBLAS_NUM_THREADS="2", NUMPY_MADVISE_HUGEPAGE="1")[:2] == ["2", "1"]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU, one thread")
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads can't be counted here")
def test_a_second_thread_would_be_counted():
    """Else the first test would prove nothing."""
    assert int(seen(OPENBLAS_NUM_THREADS="2")[2]) > 1
