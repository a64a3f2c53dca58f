"""The lab's own parts in float32, at sizes and seeds where a code of the stored weight turns at a tie."""

import pytest

from labs.core.launch import Framework
from labs.core.run import Request, run


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


@pytest.mark.parametrize(
    ("changes", "seed"),
    [
        ((), 23),
        (("bits=8", "group=2"), 0),
        (("bits=8", "group=2"), 1),
        (("bits=8", "group=4"), 23),
        (("d_in=64", "d_out=64", "group=8"), 0),
        (("d_in=64", "d_out=64", "bits=8", "group=64"), 1),
    ],
)
def test_correct_code_passes_in_float32(framework, tmp_path, changes, seed):
    config = tmp_path / f"lora_{len(changes)}_{''.join(c for c in str(changes) if c.isalnum())}_{seed}.yaml"
    config.write_text("lab: lora\n")
    asked = Request(names=(str(config),), changes=changes, seed=seed, out=tmp_path, controls=False, precision="float32")
    found = run(asked, framework).report["labs"][0]
    assert [c["name"] for c in found["checks"] if c["status"] != "passed"] == []
    assert "requantize/codes" in {c["name"] for c in found["checks"]}
