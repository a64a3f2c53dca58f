"""A bundle of the block lab without a framework process: its reference stands for torch, spoiled where a test asks."""

import json
import os
import shutil
from dataclasses import asdict

import numpy as np
import pytest

from labs.block.config import Config
from labs.block.lab import LAB
from labs.core.inputs import Draw
from labs.core.items import plan
from labs.core.judge import judge_all
from labs.core.patterns import matches
from labs.core.reports.json_text import writable
from labs.core.storage.folder import save_array
from tests.cli.samples import reports
from tests.core.reports.page import chromium

MISSING = "no chromedriver: the page was NOT tried in a browser (Debian: apt-get install chromium chromium-driver)"


@pytest.fixture(scope="session")
def browser():
    driver = shutil.which("chromedriver")
    if driver is None:
        if os.environ.get("LAB_BROWSER") == "required":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    found = chromium.start(driver)
    yield found
    found.close()


@pytest.fixture(scope="session")
def sides():
    """Inputs, reference, and observed items that differ in their last bits."""
    config = Config()
    inputs = LAB.inputs(config, Draw(0))
    reference = LAB.reference(config, inputs)
    observed = {n: a * (1 + 2e-16) if a.dtype.kind == "f" else a.copy() for n, a in reference.items()}
    for rule in LAB.rules(config):
        if rule.kind == "identical":
            found = observed.get(rule.item, observed.get(rule.other, np.arange(3.0)))
            observed[rule.item] = observed[rule.other] = found
        elif rule.kind == "within":
            observed.setdefault(rule.item, np.zeros_like(reference[rule.other]))
            observed.pop(rule.other, None)
    return config, inputs, reference, observed


@pytest.fixture(scope="session")
def made(sides):
    """A function (folder, **spoiled items) -> the report of the bundle that it wrote there."""
    config, inputs, reference, good = sides

    def make(folder, **spoiled):
        observed = {**good, **spoiled}
        checks = [c.to_json() for c in judge_all(plan(LAB.rules(config), reference), reference, observed, ())]
        for side, arrays in (("inputs", inputs), ("reference", reference), ("observed", observed)):
            for name, array in arrays.items():
                save_array(folder / "block" / side / f"{name}.npy", array)
        failed = any(c["status"] != "passed" for c in checks)
        walk = [asdict(node) for node in LAB.walk(config)]
        drawn = [c["name"] for c in checks if matches(c["name"], LAB.trajectories)]
        lab = reports.lab("block", lab="block", title=LAB.title, checks=checks, status="failed" if failed else "passed")
        report = reports.report({**lab, "walk": walk, "trajectories": drawn})
        return json.loads(json.dumps(writable(report)))  # tuples become lists, as a file has them

    return make


@pytest.fixture(scope="session")
def spoiled(sides):
    """Two items as a wrong torch side would yield them."""
    reference = sides[2]
    wrong = reference["forward/gated"].copy()
    wrong[0, 1] += 0.25
    wrong[1, 2, 3] = np.nan
    return {"forward/gated": wrong, "grad/w_q": reference["grad/w_q"] * 1.00001}
