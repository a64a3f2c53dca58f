"""`lab show NAME --part PART`: a file that can be imported and says all that a part owes."""

import inspect

import pytest

import labs
from labs.core.errors import RequestError
from labs.core.part_fields import conventions, part_fields
from labs.core.registry import load
from labs.core.stub import stub


def parts():
    return [(name, field.name) for name in labs.NAMES for field in part_fields(load(name))]


def function(text, name):
    found = {}
    exec(compile(text, f"{name}.py", "exec"), found)  # noqa: S102 - our own text
    return found[name]


@pytest.mark.parametrize(("lab", "part"), parts())
def test_every_part_of_every_lab_has_a_stub_that_runs(lab, part):
    text = stub(load(lab), part, lab)
    made = function(text, part)
    own = getattr(__import__(f"labs.{lab}.torch_impl", fromlist=["PARTS"]).PARTS, part)
    assert list(inspect.signature(made).parameters) == list(inspect.signature(own).parameters)
    assert f"lab run {lab} --swap {part}={part}.py:{part}" in text
    assert " ".join(conventions(load(lab)).split())[:60] in " ".join(made.__doc__.split())
    assert max(map(len, text.splitlines())) <= 120
    with pytest.raises(NotImplementedError):
        made(*[None] * len(inspect.signature(made).parameters)) if part != "optimizer" else made(
            *[None] * 5, lr=0, beta1=0, beta2=0, epsilon=0, weight_decay=0
        )


def test_a_type_alone_is_enough_where_no_function_has_the_name(tanh_layer):
    for file in tanh_layer.glob("torch_*.py"):
        file.unlink()
    text = stub(load(str(tanh_layer)), "activation", "tanh_layer")
    assert "def activation(a: Any) -> Any:" in text
    function(text, "activation")


def test_an_unknown_part_is_refused_with_the_nearest():
    with pytest.raises(RequestError, match="did you mean linear"):
        stub(load("lora"), "liner", "lora")
