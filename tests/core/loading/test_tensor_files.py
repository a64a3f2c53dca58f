"""Arrays out of files that a config names: read as data, refused in one sentence."""

import json
import struct

import numpy as np
import pytest

from labs.core.errors import RequestError
from labs.core.loading.tensor_files import read_tensor

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.0, -7.0]])


def safetensors(path, entries, data=b"", length=None):
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + data)
    return path


def entry(dtype, shape, end, start=0):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_npy_and_npz_give_float64(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.savez(tmp_path / "x.npz", a=X, b=np.arange(3))
    assert read_tensor(tmp_path / "x.npy", "").tolist() == X.tolist()
    assert read_tensor(tmp_path / "x.npy", "").dtype == np.float64
    assert read_tensor(tmp_path / "x.npz", "b").tolist() == [0, 1, 2]


@pytest.mark.parametrize(("kind", "dtype"), [("F64", "<f8"), ("F32", "<f4"), ("F16", "<f2")])
def test_safetensors_give_float64(tmp_path, kind, dtype):
    data = b"\0" * 8 + X.astype(dtype).tobytes()
    file = safetensors(tmp_path / "x.safetensors", {"w.q": entry(kind, [2, 3], len(data), 8)}, data)
    assert read_tensor(file, "w.q").tolist() == X.tolist()


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    data = (X.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    file = safetensors(tmp_path / "x.safetensors", {"w": entry("BF16", [2, 3], len(data))}, data)
    assert read_tensor(file, "w").tolist() == X.tolist()


def test_a_file_of_the_library_is_read_as_the_library_reads_it(tmp_path):
    from safetensors import numpy as library  # noqa: PLC0415 - wanted here alone

    library.save_file({"w": X, "ids": np.arange(4)}, tmp_path / "x.safetensors")
    assert read_tensor(tmp_path / "x.safetensors", "w").tolist() == X.tolist()
    assert read_tensor(tmp_path / "x.safetensors", "ids").tolist() == [0, 1, 2, 3]


HOSTILE = {
    "length": lambda path: safetensors(path, {}, length=1 << 60),
    "short": lambda path: path.write_bytes(b"\1"),
    "empty": lambda path: path.write_bytes(b""),
    "no json": lambda path: path.write_bytes(struct.pack("<Q", 3) + b"{{{"),
    "a list": lambda path: path.write_bytes(struct.pack("<Q", 2) + b"[]"),
    "offsets": lambda path: safetensors(path, {"w": entry("F32", [2, 3], 8)}, b"\0" * 24),
    "negative": lambda path: safetensors(path, {"w": entry("F32", [-2, -3], 24)}, b"\0" * 24),
    "before": lambda path: safetensors(path, {"w": entry("F32", [2], 4, -4)}, b"\0" * 24),
    "truncated": lambda path: safetensors(path, {"w": entry("F32", [2, 3], 24)}, b"\0" * 20),
    "entry": lambda path: safetensors(path, {"w": [1]}),
    "dtype": lambda path: safetensors(path, {"w": entry("F8_E4M3", [2], 2)}, b"\0\0"),
    "unknown": lambda path: safetensors(path, {"v": entry("U8", [2], 2)}, b"\0\0"),
    "infinite": lambda path: safetensors(path, {"w": entry("F32", [1], 4)}, np.array([np.inf], "<f4").tobytes()),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_safetensors_file_is_one_sentence(tmp_path, what):
    HOSTILE[what](tmp_path / "x.safetensors")
    with pytest.raises(RequestError, match=r"x\.safetensors: ") as error:
        read_tensor(tmp_path / "x.safetensors", "w")
    assert "\n" not in str(error.value)


def test_pickles_other_files_and_absent_ones_are_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", a=X)
    (tmp_path / "bad.npz").write_bytes(b"PK")
    cases = {("p.npy", ""): "damaged", ("x.pt", "w"): "expected a file that ends in", ("no.npy", ""): "No such file"}
    cases |= {("x.npz", "b"): "no array 'b'", ("bad.npz", "a"): "damaged"}
    for (file, name), sentence in cases.items():
        with pytest.raises(RequestError, match=sentence):
            read_tensor(tmp_path / file, name)
