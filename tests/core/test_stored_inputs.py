"""Inputs from files: put in the place of the drawn ones, or refused with both shapes."""

import numpy as np
import pytest

from labs.core import config
from labs.core.errors import RequestError
from labs.core.stored_inputs import Stored, with_stored

DRAWN = {"base": np.zeros((3, 5)), "ids": np.zeros(4, np.int64)}
W = np.arange(15.0).reshape(5, 3)


@pytest.fixture
def file(tmp_path):
    np.savez(tmp_path / "w.npz", w=W, wide=np.arange(70.0).reshape(7, 10), ids=np.arange(4, dtype=np.int32))
    return str(tmp_path / "w.npz")


def test_an_input_is_replaced_turned_and_cut(file):
    found = with_stored(DRAWN, {"base": Stored(file, "w", transpose=True), "ids": Stored(file, "ids")})
    assert found["base"].tolist() == W.T.tolist()
    assert found["base"].flags.c_contiguous
    assert (found["ids"].tolist(), found["ids"].dtype) == ([0, 1, 2, 3], np.int64)
    cut = with_stored(DRAWN, {"base": Stored(file, "wide", part="1:4, 5:")})["base"]
    assert cut.tolist() == np.arange(70.0).reshape(7, 10)[1:4, 5:].tolist()


@pytest.mark.parametrize(
    ("name", "stored", "sentence"),
    [
        ("bas", {"name": "w"}, "no such input; did you mean base?"),
        ("base", {"name": "w"}, r"shape \[5, 3\], expected \[3, 5\]; transpose: true would fit"),
        ("base", {"name": "wide"}, r"shape \[7, 10\], expected \[3, 5\]; the sizes in the config have to fit"),
        ("base", {"name": "ids"}, "holds int32, expected float64"),
        ("base", {"name": "wide", "part": "a:"}, "is no slice"),
        ("base", {"name": "wide", "part": "0,0,0"}, "is no slice"),
    ],
)
def test_what_does_not_fit_is_a_sentence(file, name, stored, sentence):
    with pytest.raises(RequestError, match=sentence):
        with_stored(DRAWN, {name: Stored(file, **stored)})


def test_a_file_that_is_not_there_is_named_with_the_key_that_asks_for_it(tmp_path):
    with pytest.raises(RequestError, match=r"from_files\.w: .*gone\.npy: No such file"):
        with_stored({"w": np.zeros(2)}, {"w": Stored(str(tmp_path / "gone.npy"))})


def test_a_config_names_the_file_and_its_resolved_form_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("lab: lora\nfrom_files:\n  base: {file: w.npy, transpose: true}\n")
    found = config.resolve("c.yaml")
    assert found.from_files == {"base": Stored(str(tmp_path / "w.npy"), transpose=True)}
    (tmp_path / "d").mkdir()
    (tmp_path / "d/c.yaml").write_text(config.to_yaml(found))
    monkeypatch.chdir("/")
    assert config.resolve(str(tmp_path / "d/c.yaml")).from_files == found.from_files
