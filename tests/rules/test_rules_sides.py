import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import labs.rules
from labs.core.inputs import Draw
from labs.core.registry import load
from labs.rules import reference, torch_faults, torch_impl
from labs.rules.config import Config
from labs.rules.controls import CONTROLS
from labs.rules.lab import LAB
from labs.rules.table import ROWS, THEMES

FOLDER = Path(labs.rules.__file__).parent
ALL = [(theme, row) for theme, rows in THEMES.items() for row in rows]
ABOUT = {"recompute_random_state": 0.05}  # half of the elements, more or less

IMPORT = """
import torch
from labs.core.inputs import Draw
from labs.rules.config import Config
from labs.rules.inputs import inputs
from labs.rules.torch_impl import PARTS, STAGES
from labs.rules import torch_faults
tensors = lambda: {name: torch.from_numpy(array) for name, array in inputs(Config(), Draw(0)).items()}
STAGES["rows"](Config(), tensors(), PARTS, None)
STAGES["rows"](Config(), tensors(), type(PARTS)(**{name: getattr(torch_faults, name) for name in vars(PARTS)}), None)
import sys
print([name for name in ("torch._dynamo", "sympy", "labs.kernels", "labs.rules.reference") if name in sys.modules])
"""


def operands(row):
    return {name: torch.from_numpy(np.array(value)) for name, value in row.given.items()}


def value(function, row):
    torch.default_generator.manual_seed(0)
    found = function(**operands(row))
    return np.asarray(found.detach() if isinstance(found, torch.Tensor) else found)


def failed(found):
    return {c.name for c in found if c.status != "passed"}


def test_kernel_torch_and_table_agree(checks):
    found = checks()
    assert failed(found) == set()
    assert len(found) == 2 * len(ROWS)


def test_decades_are_left(checks):
    assert min(c.headroom for c in checks() if c.kind == "close") > 6


@pytest.mark.parametrize("theme", THEMES)
def test_a_theme_is_its_rows_alone(checks, theme):
    found = checks(theme)
    assert failed(found) == set()
    assert {c.name for c in found} == {f"{r.name}/{side}" for r in THEMES[theme] for side in ("torch", "literal")}


@pytest.mark.parametrize("control", CONTROLS, ids=lambda c: c.name)
def test_every_wrong_number_is_caught_and_nothing_else_fails(checks, control):
    assert failed(checks(control.at["theme"], control.swap)) == {f"{control.name}/torch"} == set(control.must)


def test_every_row_has_a_control():
    assert [control.name for control in CONTROLS] == [row.name for row in ROWS]


@pytest.mark.parametrize(("theme", "row"), ALL, ids=[row.name for _, row in ALL])
def test_the_fault_really_computes_the_wrong_number(theme, row):
    assert hasattr(torch_faults.MODULES[theme], row.name)
    found, wrong = value(getattr(torch_faults, row.name), row), np.array(row.wrong)
    assert (found.dtype, found.shape) == (wrong.dtype, wrong.shape)
    np.testing.assert_allclose(found, wrong, rtol=1e-14, atol=ABOUT.get(row.name, 1e-15))


@pytest.mark.parametrize(("theme", "row"), ALL, ids=[row.name for _, row in ALL])
def test_the_literal_has_all_its_digits(theme, row):
    config = Config(theme=theme)
    found = LAB.reference(config, LAB.inputs(config, Draw(0)))[f"{row.name}/literal"]
    assert (found.dtype, found.shape) == (np.array(row.right).dtype, np.array(row.right).shape)
    np.testing.assert_allclose(found, row.right, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize(("theme", "row"), ALL, ids=[row.name for _, row in ALL])
def test_every_side_takes_the_operands_of_the_row(theme, row):
    for side in (reference, torch_impl, torch_faults):
        function = getattr(side.MODULES[theme], row.name)
        assert tuple(inspect.signature(function).parameters) == tuple(row.given), side.__name__


@pytest.mark.parametrize("theme", THEMES)
def test_every_fault_is_that_of_a_row(theme):
    module = torch_faults.MODULES[theme]
    written = {n for n, f in vars(module).items() if getattr(f, "__module__", "") == module.__name__ and n[0] != "_"}
    assert written == {row.name for row in THEMES[theme]}


def test_an_unknown_fault_is_no_attribute():
    assert not hasattr(torch_faults, "no_such_row")


def test_a_parts_signature_names_its_operands():
    parts = {field.name: field.type for field in torch_impl.PARTS.__dataclass_fields__.values()}
    assert parts["adam_l2"] == "(p, g, lr, weight_decay) -> (0.89, 0.01)"
    assert parts.keys() == {row.name for row in ROWS}


def test_facts_are_stated_as_booleans_and_judged_by_nobody(observe):
    config = Config(theme="ranks")
    items = observe(config, LAB.inputs(config, Draw(0)))
    stated = {name: array for name, array in items.items() if name.startswith("facts/")}
    assert stated.keys() == LAB.facts.keys()
    assert all(array.dtype == bool and array.shape == () for array in stated.values())
    assert not stated.keys() & LAB.reference(config, LAB.inputs(config, Draw(0))).keys()


def test_the_torch_side_imports_nothing_slow_and_nothing_of_the_reference():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ENTRY = """        Row(
            "half_forgotten",
            rule="half the square",
            fault="the square",
            source="nowhere 1",
            given={"x": 3.0},
            right=4.5,
            wrong=9.0,
        ),
"""


@pytest.fixture
def longer_table(tmp_path):
    """A copy of the lab with one row more: an entry in the table, and a function of its name on either side."""
    folder = tmp_path / "longer"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "table.py").read_text()
    (folder / "table.py").write_text(text.replace('    "losses": (\n', f'    "losses": (\n{ENTRY}'))
    for name in ("reference_losses.py", "torch_losses.py"):
        with (folder / name).open("a") as file:
            file.write("\n\ndef half_forgotten(x):\n    return x * x / 2\n")
    return folder


def test_a_new_row_is_one_entry_and_what_computes_it(longer_table, checks):
    lab = load(str(longer_table))
    found = checks(lab=lab, package=lab.package)
    assert failed(found) == set()
    assert len(found) == 2 * len(ROWS) + 2
    control = next(c for c in lab.controls if c.name == "half_forgotten")
    assert failed(checks("losses", control.swap, lab, lab.package)) == {"half_forgotten/torch"}
    assert "half_forgotten (nowhere 1): half the square\n    right  x 3: 4.5\n    wrong  the square: 9" in lab.equations


@pytest.mark.parametrize("side", ["reference", "torch"])
def test_a_wrong_side_of_a_new_row_is_found(longer_table, checks, side):
    path = longer_table / f"{side}_losses.py"
    path.write_text(re.sub(r"x \* x / 2\n$", "x * x\n", path.read_text()))
    lab = load(str(longer_table))
    expected = {"half_forgotten/torch"} | ({"half_forgotten/literal"} if side == "reference" else set())
    assert failed(checks(lab=lab, package=lab.package)) == expected


def test_a_wrong_number_in_the_table_is_found(longer_table, checks):
    path = longer_table / "table.py"
    path.write_text(path.read_text().replace("right=4.5,", "right=4.6,"))
    lab = load(str(longer_table))
    assert failed(checks(lab=lab, package=lab.package)) == {"half_forgotten/literal"}
