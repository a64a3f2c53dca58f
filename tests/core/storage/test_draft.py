import errno
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from labs.core.bundle import open_draft, read_manifest, save_array
from labs.core.errors import CannotComplete, RequestError
from labs.core.storage.writing import writing

MOMENT = datetime(2026, 11, 29, 20, 53, tzinfo=UTC)
NAME = "framework-lab-20261129T205300Z"
ROOT = Path(__file__).parents[2]


def publish(out: Path, moment: datetime = MOMENT) -> Path:
    with open_draft(out, moment) as draft:
        draft.write("report.json", "{}")
        return draft.publish()


def script(text: str, *arguments: object, first: str = "") -> subprocess.Popen[str]:
    """A Python process with the project importable; `first` is what an unshared namespace does first."""
    python = [sys.executable, "-c", text, *map(str, arguments)]
    unshared = ["unshare", "-rm", "sh", "-c", f'{first} && exec "$@"', "sh"] if first else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen([*unshared, *python], stdout=pipe, stderr=pipe, text=True, env=environment)


def needs_mounts(place: Path) -> None:
    tried = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=1m tmpfs '{place}'"]
    try:
        allowed = subprocess.run(tried, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("NOT TESTED: this machine lets nobody mount a tmpfs in a namespace of his own")


def test_a_published_bundle_is_the_only_thing_left_beside_latest(tmp_path):
    final = publish(tmp_path)
    assert final == tmp_path / NAME
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "latest"]
    assert (tmp_path / "latest").readlink() == Path(NAME)


def test_the_manifest_lists_every_file_and_not_itself(tmp_path):
    with open_draft(tmp_path, MOMENT) as draft:
        draft.write("lora/config.yaml", "lab: lora\n")
        save_array(draft.path / "lora/inputs/x.npy", np.arange(3.0))
        final = draft.publish()
    entries = read_manifest(final)
    assert [entry.path for entry in entries] == ["lora/config.yaml", "lora/inputs/x.npy"]
    assert entries[0].size == len("lab: lora\n")


def test_the_stamp_is_utc_whatever_the_time_zone(tmp_path):
    assert publish(tmp_path, MOMENT.astimezone(timezone(timedelta(hours=9)))).name == NAME


def test_a_taken_name_gets_the_next_number(tmp_path):
    (tmp_path / f"{NAME}-2").touch()
    assert [publish(tmp_path).name for _ in range(3)] == [NAME, f"{NAME}-3", f"{NAME}-4"]


def test_an_empty_folder_of_that_name_is_not_replaced(tmp_path):
    (tmp_path / NAME).mkdir()
    assert publish(tmp_path).name == f"{NAME}-2"
    assert list((tmp_path / NAME).iterdir()) == []


def test_a_name_taken_while_the_run_was_under_way_is_not_replaced(tmp_path):
    with open_draft(tmp_path, MOMENT) as draft:
        (tmp_path / NAME).mkdir()
        assert draft.publish().name == f"{NAME}-2"


def test_the_name_is_known_and_reserved_before_publishing(tmp_path):
    with open_draft(tmp_path, MOMENT) as first, open_draft(tmp_path, MOMENT) as second:
        assert (first.name, second.name) == (NAME, f"{NAME}-2")
        assert (second.publish().name, first.publish().name) == (f"{NAME}-2", NAME)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_nothing(tmp_path, error):
    def interrupted():
        with open_draft(tmp_path, MOMENT) as draft:
            draft.write("a/b", "text")
            raise error

    with pytest.raises(error):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_draft_that_is_not_published_leaves_nothing(tmp_path):
    with open_draft(tmp_path, MOMENT) as draft:
        draft.write("a", "text")
    assert list(tmp_path.iterdir()) == []


def test_out_is_made_with_its_parents(tmp_path):
    assert publish(tmp_path / "a" / "b").parent == tmp_path / "a" / "b"


def make_file(path: Path) -> None:
    path.touch()


def make_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [make_file, make_broken_link])
def test_an_out_that_is_no_folder_is_a_wrong_request(tmp_path, make):
    make(tmp_path / "out")
    with pytest.raises(RequestError, match=r"/out: not a folder"), open_draft(tmp_path / "out", MOMENT):
        pass


def test_an_out_that_is_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    publish(tmp_path / "out")
    assert (tmp_path / "real" / NAME).is_dir()


def test_a_file_where_a_parent_has_to_be_names_the_path(tmp_path):
    (tmp_path / "file").touch()
    sentence = r"file/out: can't be written: Not a directory"
    with pytest.raises(CannotComplete, match=sentence), open_draft(tmp_path / "file" / "out", MOMENT):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="NOT TESTED: no /proc to be refused by")
def test_a_place_that_refuses_names_the_path():
    with pytest.raises(CannotComplete, match=r"/proc/out: can't be written"), open_draft(Path("/proc/out"), MOMENT):
        pass


def test_a_link_in_a_draft_is_refused(tmp_path):
    with open_draft(tmp_path, MOMENT) as draft:
        (draft.path / "checkpoint").symlink_to("/etc/hostname")
        with pytest.raises(CannotComplete, match="checkpoint: a link"):
            draft.publish()
    assert list(tmp_path.iterdir()) == []


def test_latest_moves_on(tmp_path):
    publish(tmp_path)
    second = publish(tmp_path)
    assert (tmp_path / "latest").resolve() == second.resolve()


def test_a_broken_latest_is_mended(tmp_path):
    (tmp_path / "latest").symlink_to("gone")
    final = publish(tmp_path)
    assert (tmp_path / "latest").resolve() == final.resolve()


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_a_latest_that_is_no_link_stays_and_is_remarked(tmp_path, make):
    make(tmp_path / "latest")
    with open_draft(tmp_path, MOMENT) as draft:
        draft.publish()
    assert "not a link" in draft.remark
    assert not (tmp_path / "latest").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, "latest"]


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_are_not(tmp_path):
    dead = (
        ".framework-lab-20250101T000000Z.partial",
        ".framework-lab-20250101T000000Z-2.partial",
        f".{NAME}-7.partial",
    )
    for name in dead:
        (tmp_path / name / "lora").mkdir(parents=True)
    (tmp_path / ".framework-lab-20250101T000000Z.latest").symlink_to("framework-lab-20250101T000000Z")
    (tmp_path / ".framework-lab-mine.partial").mkdir()
    with open_draft(tmp_path, MOMENT), open_draft(tmp_path, MOMENT + timedelta(seconds=1)):
        names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f".{NAME}.partial", ".framework-lab-20261129T205301Z.partial", ".framework-lab-mine.partial"]


def test_a_leftover_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / ".framework-lab-20250101T000000Z.partial").symlink_to("precious")
    publish(tmp_path)
    assert (tmp_path / "precious" / "file").exists()


def test_without_locks_nothing_is_swept_and_drafts_still_work(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / ".framework-lab-20250101T000000Z.partial").mkdir()
    monkeypatch.setattr("fcntl.flock", refuse)
    assert publish(tmp_path).name == NAME
    assert (tmp_path / ".framework-lab-20250101T000000Z.partial").exists()


RACE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from labs.core.bundle import open_draft
for i in range(30):
    with open_draft(Path(sys.argv[1]), datetime(2026, 11, 29, 20, 53, i // 10, tzinfo=UTC)) as draft:
        draft.write("who", sys.argv[2])
        print(draft.publish().name, flush=True)
"""


def test_two_processes_in_the_same_seconds_get_a_folder_each(tmp_path):
    racers = [script(RACE, tmp_path, who) for who in ("a", "b")]
    names = [racer.communicate(timeout=60)[0].split() for racer in racers]
    assert [len(found) for found in names] == [30, 30]
    assert len({*names[0], *names[1]}) == 60
    assert all(
        (tmp_path / name / "who").read_text() == who for who, found in zip("ab", names, strict=True) for name in found
    )


KILLED = """
import os, random, signal, sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
import numpy as np
from labs.core.bundle import open_draft, save_array
out, rounds = Path(sys.argv[1]), int(sys.argv[2])
moment = datetime(2026, 11, 29, 20, 53, tzinfo=UTC)
def write(moment):
    with open_draft(out, moment) as draft:
        for i in range(5):
            save_array(draft.path / f"lora/observed/{i}.npy", np.full(999, i))
        draft.write("report.json", "{}")
        draft.publish()
began = time.perf_counter()
write(moment)
usual = time.perf_counter() - began
chance = random.Random(int(sys.argv[3]))
for i in range(1, rounds):
    child = os.fork()
    if child == 0:
        write(moment + timedelta(seconds=i))
        os._exit(0)
    time.sleep(chance.uniform(0.0, 1.3 * usual))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_kill_9_at_any_moment_leaves_whole_bundles_or_none(tmp_path):
    killed = script(KILLED, tmp_path, 150, 7)
    assert killed.communicate(timeout=100)[1] == ""
    publish(tmp_path, MOMENT + timedelta(days=1))
    bundles = [path for path in tmp_path.iterdir() if path.name != "latest"]
    assert [path.name for path in bundles if path.name.startswith(".")] == []
    assert all(len(read_manifest(path)) in (1, 6) and (path / "report.json").exists() for path in bundles)
    assert all(len(list(path.rglob("*.npy"))) == len(read_manifest(path)) - 1 for path in bundles)
    assert 1 < len(bundles) < 151


FULL = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
import numpy as np
from labs.core.bundle import open_draft, save_array
from labs.core.errors import CannotComplete
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
out = Path(sys.argv[1])
try:
    with open_draft(out, datetime(2026, 11, 29, tzinfo=UTC)) as draft:
        for i in range(40):
            save_array(draft.path / f"{i}.npy", np.zeros(16000))
        draft.publish()
except CannotComplete as error:
    print(error, sorted(path.name for path in out.iterdir()))
"""


def test_a_file_that_may_not_grow_names_the_path_and_leaves_nothing(tmp_path):
    said = script(FULL, tmp_path, 100_000).communicate(timeout=60)[0]
    assert said == f"{tmp_path}/.framework-lab-20261129T000000Z.partial/0.npy: can't be written: File too large []\n"


def test_a_full_disk_names_the_path_and_leaves_nothing(tmp_path):
    needs_mounts(tmp_path)
    full = script(FULL, tmp_path, 0, first=f"mount -t tmpfs -o size=1m tmpfs '{tmp_path}'")
    said = full.communicate(timeout=60)[0]
    assert said.endswith(".npy: can't be written: No space left on device []\n")


def test_a_read_only_disk_names_the_path(tmp_path):
    needs_mounts(tmp_path)
    refused = script(FULL, tmp_path, 0, first=f"mount -t tmpfs -o ro tmpfs '{tmp_path}'")
    assert refused.communicate(timeout=60)[0] == f"{tmp_path}: can't be written: Read-only file system []\n"


def test_a_disk_that_is_full_at_the_manifest_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("labs.core.storage.draft.to_text", full)
    with pytest.raises(CannotComplete, match="No space left"):
        publish(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_without_a_number_is_still_a_sentence():
    with pytest.raises(CannotComplete, match=r"^a: can't be written: 3 requested and 0 written$"), writing(Path("a")):
        raise OSError("3 requested and 0 written")


def test_manifest_is_plain_json(tmp_path):
    assert json.loads((publish(tmp_path) / "manifest.json").read_text())["schema"] == "framework-lab/manifest/1"
