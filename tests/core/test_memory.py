import pytest

from labs.core.errors import RequestError
from labs.core.memory import available_bytes, require


def machine(root, available_kib, limit=None, used=0):
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {available_kib} kB\n")
    if limit is not None:
        (root / "sys/fs/cgroup").mkdir(parents=True)
        (root / "sys/fs/cgroup/memory.max").write_text(f"{limit}\n")
        (root / "sys/fs/cgroup/memory.current").write_text(f"{used}\n")
    return root


def test_the_kernel_says_what_is_available(tmp_path):
    assert available_bytes(machine(tmp_path, 4)) == 4096


def test_a_cgroup_that_is_tighter_wins(tmp_path):
    assert available_bytes(machine(tmp_path, 4, limit=3000, used=1000)) == 2000


def test_a_cgroup_without_a_limit_says_nothing(tmp_path):
    assert available_bytes(machine(tmp_path, 4, limit="max")) == 4096


def test_a_machine_that_does_not_say_is_not_refused(tmp_path):
    assert available_bytes(tmp_path) is None


def test_what_can_not_fit_is_refused_with_the_estimate():
    with pytest.raises(RequestError, match=r"lora: needs about 1024\.0 GiB of memory, \d+\.\d GiB are available"):
        require("lora", 1 << 40)


def test_what_fits_passes():
    require("lora", 1)
