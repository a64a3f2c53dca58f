import os
from types import SimpleNamespace

import pytest

from labs.core.errors import CannotComplete
from labs.core.storage.writing import refuse_full

ROOMY = {"f_blocks": 100, "f_bavail": 50, "f_frsize": 4096, "f_files": 100, "f_favail": 50}


def system(monkeypatch, **values):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**{**ROOMY, **values}))


@pytest.mark.parametrize("values", [{"f_bavail": 0}, {"f_bavail": 1, "f_frsize": 512}, {"f_favail": 0}])
def test_a_folder_without_room_is_refused_by_its_name(tmp_path, monkeypatch, values):
    system(monkeypatch, **values)
    with pytest.raises(CannotComplete, match=f"{tmp_path}: can't be written: No space left on device"):
        refuse_full(tmp_path)


@pytest.mark.parametrize("values", [{}, {"f_blocks": 0, "f_bavail": 0}, {"f_files": 0, "f_favail": 0}])
def test_room_is_no_error_and_what_a_file_system_does_not_say_is_not_held_against_it(tmp_path, monkeypatch, values):
    system(monkeypatch, **values)
    refuse_full(tmp_path)
