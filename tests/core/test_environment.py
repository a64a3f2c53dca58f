import json
import subprocess

import pytest

from labs.core.environment import commit, environment


def git(folder, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.invalid"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_it_holds_both_sides_the_tool_and_the_command():
    found = environment(["lab", "run"], {"torch": "2.13.0"})
    assert found.keys() == {"tool", "command", "referee", "framework"}
    assert found["framework"] == {"torch": "2.13.0"}
    assert {"python", "numpy", "blas", "cpu", "threads", "os"} <= found["referee"].keys()


def test_it_is_json():
    found = environment(["lab"], {})
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_checkout_has_a_commit_of_40_digits(checkout):
    assert len(commit(checkout) or "") == 40


def test_a_changed_file_shows(checkout):
    clean = commit(checkout)
    (checkout / "file").write_text("two")
    assert commit(checkout) == f"{clean}-dirty"


def test_a_tag_does_not_hide_the_commit(checkout):
    clean = commit(checkout)
    git(checkout, "tag", "-a", "v1", "-m", "v1")
    assert commit(checkout) == clean


def test_a_folder_inside_a_checkout_is_not_one(checkout):
    (checkout / "site-packages").mkdir()
    assert commit(checkout / "site-packages") is None


def test_a_git_hook_does_not_name_another_commit(checkout, monkeypatch):
    clean = commit(checkout)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert commit(checkout) == clean


def test_without_git_there_is_no_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit(checkout) is None
