"""Reports as the engine writes them, small: a green, a red, a crashed and a narrowed run."""

from typing import Any

Record = dict[str, Any]


def check(name: str = "trained/grad/x", **changes: Any) -> Record:
    return {
        "name": name, "kind": "close", "status": "passed", "other": "", "shape": [3, 4], "dtype": "float64",
        "count": 12, "max_abs": 2.2e-16, "mean_abs": 4e-17, "p99_abs": 2.2e-16, "max_rel": 3e-16, "max_ulp": 1.0,
        "worst": {"index": [1, 2], "reference": 0.25, "observed": 0.25000000000000006},
        "tolerance": {"atol": 1e-9, "rtol": 1e-8, "reason": ""}, "out_of_tolerance": 0, "headroom": 7.4,
        "blunt_share": 0.0, "reference_sha256": "00", "observed_sha256": "01", "arbiter": None, "diagnosis": None,
        "blame": None, "message": "", **changes,
    }  # fmt: skip


def over(name: str, decades: float, **changes: Any) -> Record:
    """A failed check, `decades` over its limit."""
    return check(
        name,
        status="failed",
        headroom=-decades,
        max_abs=0.25,
        out_of_tolerance=3,
        worst={"index": [1, 2], "reference": 0.25, "observed": 0.5},
        message="3 of 12 elements out of tolerance, worst at [1, 2]: observed 0.5, reference 0.25, limit 3.5e-09",
        **changes,
    )


def missing(name: str) -> Record:
    """An item that the observed side did not yield: nothing to compare."""
    nothing = dict.fromkeys(("max_abs", "mean_abs", "p99_abs", "max_rel", "max_ulp", "worst", "headroom"))
    return check(name, status="failed", message="missing: the torch side did not yield it", **nothing)


def control(name: str = "alpha_without_rank", **changes: Any) -> Record:
    return {
        "name": name, "why": "the scale is alpha, not alpha/r", "status": "caught", "must": ["trained/*"], "may": [],
        "failed": ["trained/output"], "separation": {"good": 7.4, "fault": 8.1}, **changes,
    }  # fmt: skip


def lab(name: str = "lora", **changes: Any) -> Record:
    return {
        "name": name, "lab": "lora", "title": "A low-rank branch on a frozen base", "seed": 0, "status": "passed",
        "seconds": {"reference": 0.1}, "peak_rss_bytes": {"referee": 1, "framework": 2}, "promised": 2,
        "checks": [check("trained/output", headroom=8.0), check()], "controls": [control()], "narrowed": [],
        "loosened": [], "wiring": {"spoils": 9, "problems": []}, "failures": [],
        "stages": [{"name": "forward", "status": "ok", "seconds": 0.2}], **changes,
    }  # fmt: skip


def report(*labs: Record, **changes: Any) -> Record:
    failed = any(one["status"] != "passed" for one in labs)
    run = {
        "id": "0", "created": "2026-11-29T20:53:00Z", "command": ["lab", "run"], "seconds": 1.44,
        "status": "failed" if failed else "passed", "exit_code": int(failed), "bundle": "framework-lab-x", **changes,
    }  # fmt: skip
    environment = {"referee": {"numpy": "2.4.6"}, "framework": {"torch": "2.13.0"}}
    return {"schema": "framework-lab/report/1", "run": run, "environment": environment, "labs": list(labs)}


def green() -> Record:
    return report(lab())


def red() -> Record:
    """A run in which two values are off, one is missing, a control is missed and the wiring has a hole."""
    checks = [
        check("trained/output"),
        over("trained/loss", 1.5),
        over(
            "trained/grad/lora_a",
            7.9,
            arbiter={"reference_ulp": 0.4, "observed_ulp": 4.5e15},
            blame={"side": "observed", "because": "it has the values of the known fault alpha_without_rank"},
            diagnosis="the torch side equals alpha_without_rank",
        ),
        missing("trained/grad/lora_b"),
    ]
    controls = [control(), control("no_scale", status="missed", failed=[])]
    wiring = {"spoils": 9, "problems": ["a spoiled merge/output passed its check"]}
    return report(lab(status="failed", checks=checks, controls=controls, wiring=wiring))


def plainly_red() -> Record:
    """A run in which nothing but two checks failed."""
    return report(lab(status="failed", checks=[over("a", 1.0), over("b/c", 3.0), check("d")]))


def crash() -> Record:
    """A run in which a stage raised."""
    tail = 'stage forward raised ZeroDivisionError: division by zero\n  File "parts.py", line 3, in linear'
    stages = [{"name": "forward", "status": "raised", "seconds": 0.2}]
    return report(lab(status="failed", failures=[tail], stages=stages, checks=[], controls=[]))


def narrowed() -> Record:
    """A green run that was asked for less and allowed more."""
    loosened = [{"pattern": "merge/*", "atol": 1e-6, "rtol": 1e-5, "reason": "float32 | storage"}]
    return report(lab(narrowed=["--only trained/*", "--no-controls"], loosened=loosened, controls=[]))


def since(*changes: Record, **verdict: Any) -> Record:
    """A green run held against a baseline; a change of class regression or removed fails it."""
    worse = any(c["class"] in ("regression", "removed") for c in changes)
    baseline = {
        "run": {"status": "failed" if worse else "passed", "exit_code": int(worse), "fails": ["regression", "removed"]},
        "a": {"id": "20261101T000000Z"}, "cause": "", "changes": list(changes), **verdict,
    }  # fmt: skip
    code = baseline["run"]["exit_code"]
    found = report(lab(), status="failed" if code else "passed", exit_code=code)
    return {**found, "baseline": baseline}


def change(name: str = "trained/output", **changes: Any) -> Record:
    """What became of a check since the baseline."""
    return {
        "config": "lora", "name": name, "kind": "close", "class": "regression", "status": ["passed", "failed"],
        "headroom": [7.4, -1.0], "ulp": 9.0, "why": "", **changes,
    }  # fmt: skip
