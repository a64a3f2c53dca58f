import io
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labs.core.bundle import DamagedBundle, Folder, save_array
from labs.core.storage.folder import MAPPED


def header(shape: object, descr: object = "<f8", *, fortran: bool = False) -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": descr, "fortran_order": fortran, "shape": shape})
    return made.getvalue()


def pickled() -> bytes:
    made = io.BytesIO()
    np.save(made, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return made.getvalue()


def plain(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, array, allow_pickle=False)
    return made.getvalue()


HOSTILE = {
    "empty": (b"", "not a .npy file"),
    "text": (b"hello, this is no array at all", "not a .npy file"),
    "pickled": (pickled(), "not the header of a plain array"),
    "structured": (header((1,), [("a", "<f8")]) + bytes(8), "not the header"),
    "strings": (plain(np.array(["a"])), "not the header"),
    "a dtype that is none": (header((1,), "<f7") + bytes(7), "dtype <f7"),
    "huge": (header((1 << 40,)) + bytes(8), "8 bytes of data, expected 8796093022208"),
    "a product that overflows": (header((1 << 61, 1 << 6, 1)) + bytes(8), "8 bytes of data, expected"),
    "a length beyond 64 bits": (header((1 << 80,)) + bytes(8), "8 bytes of data, expected"),
    "negative": (header((-1,)) + bytes(8), "not the header"),
    "too many dimensions": (header((1,) * 65) + bytes(8), "dimension"),
    "empty and too large": (header((0, 1 << 62)), "dimension|too"),
    "truncated": (plain(np.arange(9.0))[:-1], "71 bytes of data, expected 72"),
    "truncated header": (plain(np.arange(9.0))[:40], "not the header"),
    "longer": (plain(np.arange(9.0)) + b"x", "73 bytes of data, expected 72"),
    "fortran": (plain(np.asfortranarray(np.ones((2, 3)))), "Fortran order"),
    "version": (b"\x93NUMPY\x09\x00" + bytes(90), "version"),
    "nested header": (b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"(" * 9000, "not the header"),
    "header that calls": (
        b"\x93NUMPY\x01\x00" + (20).to_bytes(2, "little") + b"__import__('os')    ",
        "not the header",
    ),
    "slow to match": (
        header((1,)).replace(b"\x76\x00", b"\xff\xff").replace(b"(1,)", b"(" + b"1" * 65000),
        "not the header",
    ),
    "a gap in a length": (header((11,)).replace(b"11,", b"1 1") + bytes(8), "invalid literal"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_array_is_refused_by_name(tmp_path, name):
    data, sentence = HOSTILE[name]
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(DamagedBundle, match=rf"x\.npy: .*({sentence})"):
        Folder(tmp_path)["x"]


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(st.sampled_from(["f8", "f4", "i8", "?", "c16", "g"]), hnp.array_shapes(min_dims=0, min_side=0)))
def test_what_is_saved_is_read_back_bit_for_bit(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("arrays")
    save_array(folder / "a/b.npy", array)
    found = Folder(folder, "a")["b"]
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("array", [np.ones((3, 4)).T, np.arange(9)[::2], np.broadcast_to(1.0, (2, 2)), np.float64(3)])
def test_any_layout_is_saved_as_numpy_would(tmp_path, array):
    save_array(tmp_path / "x.npy", np.asarray(array))
    assert (tmp_path / "x.npy").read_bytes() == plain(np.array(array, order="C"))


def test_an_object_array_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="dtype object"):
        save_array(tmp_path / "x.npy", np.array([None]))


def test_a_large_array_is_mapped_and_can_not_be_written(tmp_path):
    array = np.arange(MAPPED // 8 + 1, dtype=np.float64)
    save_array(tmp_path / "x.npy", array)
    found = Folder(tmp_path)["x"]
    assert np.array_equal(found, array)
    assert not found.flags.writeable
    assert type(found.base).__name__ == "mmap"


def test_items_are_listed_by_path_in_order(tmp_path):
    for name in ("b", "a/c", "a/b", "d.e-f_0"):
        save_array(tmp_path / f"lora/{name}.npy", np.zeros(1))
    (tmp_path / "lora/note.txt").touch()
    assert sorted(Folder(tmp_path, "lora")) == ["a/b", "a/c", "b", "d.e-f_0"]
    assert len(Folder(tmp_path, "lora")) == 4


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    folder = Folder(tmp_path, "lora/observed")
    assert list(folder) == []
    assert "x" not in folder
    assert folder.get("x") is None


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/hostname", "a//b", "", "A", "a\nb", "a\0b", "a\\b"])
def test_a_name_that_is_no_item_is_refused(tmp_path, name):
    save_array(tmp_path / "x.npy", np.zeros(1))
    (tmp_path / "in" / "a").mkdir(parents=True)
    with pytest.raises(DamagedBundle):
        Folder(tmp_path, "in")[name]


LINKS = {"file": ("in/x.npy", "../x.npy"), "folder": ("in/sub", ".."), "root": ("in", ".")}


@pytest.mark.parametrize("where", LINKS)
def test_a_link_is_not_followed(tmp_path, where):
    link, target = LINKS[where]
    save_array(tmp_path / "x.npy", np.zeros(1))
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(target)
    with pytest.raises(DamagedBundle, match="a link"):
        Folder(tmp_path, "in")["sub/x" if where == "folder" else "x"]


def test_a_linked_root_is_not_listed(tmp_path):
    save_array(tmp_path / "out/x.npy", np.zeros(1))
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/lora").symlink_to("../out")
    with pytest.raises(DamagedBundle, match="lora: a link"):
        list(Folder(tmp_path / "bundle", "lora"))


def test_a_pipe_is_refused_and_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(DamagedBundle, match="pipe"):
        Folder(tmp_path)["x"]


def test_the_bundle_itself_may_be_a_link(tmp_path):
    save_array(tmp_path / "real/in/x.npy", np.zeros(1))
    (tmp_path / "latest").symlink_to("real")
    assert list(Folder(tmp_path / "latest", "in")) == ["x"]
