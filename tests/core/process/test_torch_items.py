import weakref

import numpy as np
import pytest
import torch

from labs.core.process.pack import read_pack
from labs.core.process.torch_items import _MAPPED, _PIECE, load_inputs, pack_items, save_items

SIZES = {"a number": (), "nothing": (0, 3), "small": (3, 2), "a piece": (_PIECE // 8,), "more": (7, _PIECE // 8, 1)}


@pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)
def test_an_item_is_written_as_numpy_writes_it(tmp_path, shape):
    array = np.random.default_rng(0).random(shape)
    assert save_items({"grad/x": array}, str(tmp_path)) == ("grad/x",)
    np.save(tmp_path / "expected.npy", array)
    assert (tmp_path / "grad/x.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


def test_only_items_with_the_very_bits_of_the_good_run_are_the_same(tmp_path):
    good = {"zero": np.zeros(2), "bad": np.full(2, np.nan), "one": np.ones(2), "kind": np.ones(2), "shape": np.ones(2)}
    mine = {**good, "zero": -np.zeros(2), "kind": np.ones(2, np.float32), "shape": np.ones((2, 1)), "more": np.ones(1)}
    pack_items(good, str(tmp_path / "good"), "")
    written, same = pack_items(mine, str(tmp_path / "mine"), str(tmp_path / "good"))
    assert (written, same) == (("zero", "kind", "shape", "more"), ("bad", "one"))
    assert np.signbit(read_pack(str(tmp_path / "mine"))["zero"]).all()


def test_what_is_all_the_same_leaves_no_file(tmp_path):
    pack_items({"x": np.ones(2)}, str(tmp_path / "good"), "")
    assert pack_items({"x": np.ones(2)}, str(tmp_path / "mine"), str(tmp_path / "good")) == ((), ("x",))
    assert not (tmp_path / "mine").exists()


def test_an_item_is_let_go_when_it_is_written(tmp_path):
    items = {"x": np.ones(3), "y": np.ones(3)}
    left = [weakref.ref(array) for array in items.values()]
    save_items(items, str(tmp_path))
    assert [there() for there in left] == [None, None]


@pytest.mark.parametrize("size", [3, 10_000, _MAPPED // 8 + 1])
def test_who_writes_into_an_input_harms_only_itself(tmp_path, size):
    np.save(tmp_path / "x.npy", np.ones(size))
    load_inputs(str(tmp_path))["x"].zero_()
    (found,) = load_inputs(str(tmp_path)).values()
    assert torch.equal(found, torch.ones(size, dtype=torch.float64))
