"""Packs: what is written is what is read, by us and by the library of the format."""

import numpy as np
import pytest
import safetensors.numpy

from labs.core.process.pack import KINDS, pack_file, read_pack, write_pack

ARRAYS = {
    "flags": np.array([True, False, True]),
    "grad/x": np.linspace(-1.0, 1.0, 6).reshape(2, 3),
    "loss": np.array(0.1),
    "nothing": np.zeros((0, 3)),
    "signs": np.array([-0.0, np.nan, np.inf]),
    **{f"of/{code[1:]}": np.arange(3).astype(code) for code in KINDS},
}


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_every_array_comes_back_with_its_bits(tmp_path):
    file = pack_file(str(tmp_path / "out"), "stage/part", rank=1, ranks=2)
    write_pack(file, ARRAYS)
    found, theirs = read_pack(file), safetensors.numpy.load_file(file)
    assert file == str(tmp_path / "out/stage/part-rank1.safetensors")
    assert found.keys() == ARRAYS.keys() == theirs.keys()
    assert all(same(found[name], array) and same(theirs[name], array) for name, array in ARRAYS.items())


def test_what_is_read_is_aligned_and_nobody_can_write_into_it(tmp_path):
    write_pack(str(tmp_path / "a.safetensors"), ARRAYS)
    found = read_pack(str(tmp_path / "a.safetensors"))
    assert all(array.flags.aligned and not array.flags.writeable for array in found.values())


def test_equal_arrays_give_equal_files_and_none_is_written_over(tmp_path):
    for name in ("a", "b"):
        write_pack(str(tmp_path / name), ARRAYS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(FileExistsError):
        write_pack(str(tmp_path / "a"), ARRAYS)


def test_one_rank_alone_needs_no_number():
    assert pack_file("out", "routes", rank=0, ranks=1) == "out/routes.safetensors"
