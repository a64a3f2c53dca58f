"""Small bundles written the way a run writes them: judged by the real judge, sealed by the real draft."""

import json
from datetime import UTC, datetime

import numpy as np

from labs.core.bundle import open_draft, save_array
from labs.core.items import Tolerance, plan, promised
from labs.core.judge import Check, judge_all
from labs.core.lab import identical, within, zero
from labs.core.storage.manifest import files, measure, to_text

RULES = (zero("grad/a"), identical("resume/w", "w"), within("error", "bound"))
TOLERANCES = (("loose", Tolerance(1e-3, 0.0, "sums of a million terms")),)
WITNESS = Check(
    "grad/w", "witness", "passed", shape=(2, 3), dtype="float64", count=6, max_abs=1e-17, headroom=5.0,
    tolerance={"atol": 1e-12, "rtol": 0.0, "reason": "complex step"},
    worst={"index": [0, 0], "reference": 1.0, "observed": 1.0},
)  # fmt: skip
W = np.arange(1.0, 7.0).reshape(2, 3)
BUILD = "PyTorch built with:\n  - GCC 13.3\n  - CPU capability usage: AVX2\n  - Build settings: BLAS_INFO=mkl, X=1, \n"


def sides():
    reference = {
        "w": W, "loose": W / 7, "grad/a": np.zeros(3), "mask": np.array([True, False]), "bound": np.full(2, 0.5),
    }  # fmt: skip
    w = W * (1 + 1e-15)
    observed = {
        "w": w, "loose": W / 7 + 1e-4, "grad/a": np.zeros(3), "mask": np.array([True, False]), "resume/w": w,
        "error": np.array([0.25, -0.5]),
    }  # fmt: skip
    return reference, observed


def environment(**torch):
    side = {
        "python": "3.12.1", "executable": "/usr/bin/python", "numpy": "2.4.6", "threads": {"cpus": 2, "usable": 2},
        "cpu": {"model": "some", "flags": ["avx", "avx2"]}, "variables": {"MKL_CBWR": None},
    }  # fmt: skip
    framework = {**side, "torch": {"version": "2.13.0", "build": BUILD, "cpu_capability": "AVX2", **torch}}
    return {
        "tool": {"version": None, "commit": "c0ffee"},
        "command": ["lab", "run"],
        "referee": side,
        "framework": framework,
    }


def control(name="alpha_without_rank", status="caught"):
    return {
        "name": name, "why": "the scale is alpha", "status": status, "must": ["w"], "may": [], "failed": ["w"],
        "separation": {"good": 7.0, "fault": 9.0},
    }  # fmt: skip


def replaced(arrays, changes):
    """`arrays` with `changes` laid over them; None takes one away."""
    return {name: array for name, array in {**arrays, **(changes or {})}.items() if array is not None}


def make(
    out, observed=None, *, reference=None, inputs=None, config="", save="all", environ=None, name="lora",
    rules=RULES, tolerances=TOLERANCES, witness=WITNESS, **lab,
):  # fmt: skip
    """A bundle of one config; `observed` and `reference` replace items, `lab` replaces keys of the report's entry."""
    known, good = sides()
    known, found = replaced(known, reference), replaced(good, observed)
    planned = plan(rules, known)
    checks = (*judge_all(planned, known, found, tolerances), witness)
    entry = {
        "name": name, "lab": "lora", "title": "", "seed": 0, "promised": len(promised(planned)), "narrowed": [],
        "loosened": [], "seconds": {}, "peak_rss_bytes": {}, "stages": [], "failures": [],
        "wiring": {"spoils": 1, "problems": []}, "checks": [check.to_json() for check in checks],
        "controls": [control()], "facts": [], "tables": [],
        "status": "passed" if all(c.status == "passed" for c in checks) else "failed", **lab,
    }  # fmt: skip
    code = int(entry["status"] != "passed")
    run = {
        "id": "0",
        "created": "2026-11-29T20:53:00Z",
        "command": ["lab", "run"],
        "status": entry["status"],
        "exit_code": code,
        "seconds": 1.0,
    }
    report = {
        "schema": "framework-lab/report/1",
        "run": run,
        "environment": environ or environment(),
        "labs": [entry],
    }
    with open_draft(out, datetime.now(UTC)) as draft:
        draft.write("report.json", json.dumps(report, indent=1))
        draft.write(f"{name}/config.yaml", config or f"lab: lora\nseed: 0\nthreads: 1\nsave: {save}\nrank: 4\n")
        kept = {"all": {"inputs": {"x": W} | (inputs or {}), "reference": known, "observed": found}}.get(save, {})
        for side, arrays in kept.items():
            for item, array in arrays.items():
                save_array(draft.path / f"{name}/{side}/{item}.npy", array)
        return draft.publish()


def forge(bundle, change):
    """Change the report, then hash everything again as a careful forger would."""
    report = json.loads((bundle / "report.json").read_text())
    change(report)
    (bundle / "report.json").write_text(json.dumps(report))
    rehash(bundle)


def rehash(bundle):
    (bundle / "manifest.json").write_text(to_text(measure(bundle, name) for name, _ in files(bundle)))


def entry_of(report):
    """The one config of a sample report."""
    return report["labs"][0]


def check_of(report, name, kind="close"):
    return next(c for c in entry_of(report)["checks"] if (c["name"], c["kind"]) == (name, kind))
