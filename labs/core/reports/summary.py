"""What every report says first: the verdict in words, which check is tightest, which failure is worst.

Pure functions over report.json (schema "framework-lab/report/1"), standard library only, so that the terminal text and
the file reports can't tell different stories.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

STATUS = {"error": "not completed"}
FEW = 6  # names in a sentence
SENTENCE = 120  # characters of a failure in a verdict line
DISTANCE = re.compile(r" \([^()]* of the largest magnitude[^()]*\)")  # differs from item to item
EQUALS = ("the torch side equals ", "the reference equals ")  # so begins a diagnosis that names a known fault
DENIED = " here, but not at "  # and so it goes on where another item denies that the fault is at work
MISSING = "missing"  # so begins the message about an item that one side lacks
ALL_OR_NOTHING = {"exact": "differ", "identical": "differ", "zero": "are not 0"}
SIDES = {"reference": "the reference is", "observed": "the torch side is", "both": "both sides are"}


def number(value: object) -> float:
    """A JSON number as float; "nan", "inf" and "-inf" come back from their strings, what is absent is NaN."""
    return math.nan if value is None else float(str(value))


def short(value: object, form: str = ".3g", absent: str = "") -> str:
    """A JSON number as text, in three digits where `form` does not say otherwise."""
    return absent if value is None else format(number(value), form)


def failing(lab: Record) -> list[Record]:
    """The failed checks: first the one where it begins, then worst first."""
    failed = [c for c in lab["checks"] if c["status"] != "passed"]
    first = beginning(lab)
    return sorted(failed, key=lambda c: (c is not first, badness(c)))


def badness(check: Record) -> tuple[int, float]:
    """What failed checks are sorted by: NaN and shapes, then most decades over, then what has no size.

    An item that is missing has none, nor has an integer or a bit: nobody can say how wrong it is.
    """
    headroom = number(check.get("headroom"))
    if all_or_nothing(check) or check["message"].startswith(MISSING):
        return 2, 0.0
    return (0, 0.0) if math.isnan(headroom) else (1, headroom)


def all_or_nothing(check: Record) -> bool:
    """Whether a check compared values and allows no difference at all, so that it has no distance from a limit."""
    return check["kind"] in ALL_OR_NOTHING and not math.isnan(number(check.get("headroom")))


def beginning(lab: Record) -> Record | None:
    """The failed check that the lab computes first: in the order of its items, gradients along its walk."""
    failed: list[Record] = [c for c in lab["checks"] if c["status"] != "passed" and not unanswered(lab, c)]
    first = next(iter(failed), None)
    back = [node["gradient"] for node in lab.get("walk", ())]
    if first is None or first["name"] not in back:
        return first
    return min((c for c in failed if c["name"] in back), key=lambda c: back.index(c["name"]))


def unanswered(lab: Record, check: Record) -> bool:
    """Whether a check fails only because a stage did, and so says nothing by itself."""
    return bool(lab["failures"]) and check["message"].startswith(MISSING)


def answered(lab: Record) -> list[Record]:
    """The failed checks that say something by themselves, in the order of `failing`."""
    return [c for c in failing(lab) if not unanswered(lab, c)]


def without_answer(lab: Record) -> str:
    """`60 checks without an answer because of that`, to stand below the stages that failed; "" where there is none."""
    silent = sum(c["status"] != "passed" and unanswered(lab, c) for c in lab["checks"])
    return f"{count(silent, 'check')} without an answer because of that" if silent else ""


def tightest(lab: Record) -> Record | None:
    """The `close` check with the least headroom (any check where none is close), None when no check has one.

    A witness has a limit near rounding, and a `within` item may use its bound up: their headroom is small when all is
    well.
    """
    measured = [c for c in lab["checks"] if not math.isnan(number(c.get("headroom")))]
    return min([c for c in measured if c["kind"] == "close"] or measured, key=badness, default=None)


def telling(lab: Record) -> Record | None:
    """The check that a verdict speaks of: the worst failure, else the tightest."""
    failed = [c for c in lab["checks"] if c["status"] != "passed"]
    return min(failed, key=badness, default=None) or tightest(lab)


def limit(check: Record) -> float | None:
    """What the worst element was allowed to be off: atol + rtol * abs(reference); None without a tolerance."""
    tolerance, worst = check.get("tolerance"), check.get("worst")
    if not tolerance or not worst:
        return None
    return number(tolerance["atol"]) + number(tolerance["rtol"]) * abs(number(worst["reference"]))


def stated(tolerance: Record) -> str:
    """A tolerance as the limit that it makes: `1e-09 + 1e-08 |reference|`."""
    return f"{number(tolerance['atol']):g} + {number(tolerance['rtol']):g} |reference|"


def wrong_side(check: Record) -> str:
    """Which side is wrong and why, as a sentence; "" where the run did not ask."""
    blame = check.get("blame")
    if blame:
        return f"{SIDES[blame['side']]} wrong: {blame['because']}"
    return "undecided: nothing tells which side is wrong" if check.get("arbiter") else ""


def distances(check: Record) -> str:
    """How far each side is from the formulas in longdouble; "" where that was not asked, or the formulas are wrong."""
    arbiter, blame = check.get("arbiter"), check.get("blame")
    if not arbiter or (blame and blame["side"] != "observed"):
        return ""
    reference, observed = number(arbiter["reference_ulp"]), number(arbiter["observed_ulp"])
    return f"observed {observed:.3g} ULP from the formulas in longdouble, reference {reference:.3g}"


def told(check: Record) -> list[str]:
    """What a failed check says, a sentence each: how far off, what, which side, and the fault that it equals."""
    head = check["message"] if all_or_nothing(check) else f"{decades(check)}: {check['message']}"
    return [s for s in (head, wrong_side(check), distances(check), check.get("diagnosis") or "") if s]


def is_sound(control: Record) -> bool:
    """Whether a known fault says nothing against the checks: caught, or too small for a narrow precision to show."""
    return control["status"] in ("caught", "unseen")


def caught(lab: Record) -> tuple[int, int]:
    """How many known faults were caught, and how many there were."""
    controls = lab["controls"]
    return sum(c["status"] == "caught" for c in controls), len(controls)


def trouble(lab: Record) -> list[str]:
    """What failed and is no check: stages and crashes first, because missing items follow from them, then doubts."""
    return [*lab["failures"], *doubts(lab)]


def doubts(lab: Record) -> list[str]:
    """Why the checks themselves can't be trusted: missed or leaked controls, wiring.

    Where a check has failed, the lab's own parts may be what failed it, and the controls run on these parts.
    """
    controls = [control_sentence(c) for c in lab["controls"] if not is_sound(c)]
    if len(controls) > 1 and failing(lab):
        controls = [f"{len(controls)} of {len(lab['controls'])} known faults can't be told while the run itself is red"]
    return [*controls, *(f"wiring: {p}" for p in lab["wiring"]["problems"])]


def control_sentence(control: Record) -> str:
    """What a missed or leaked control says about the checks."""
    name, status = control["name"], control["status"]
    reason = f" ({control['why']})" if control["why"] else ""
    failed = some(control["failed"]) or "nothing"
    if control.get("message"):
        return f"control {name} {status}: {control['message']}{reason}"
    if status == "missed":
        return f"control {name} missed: {some(control['must'])} had to fail, {failed} did{reason}"
    return f"control {name} {status}: failed outside what it may touch: {failed}{reason}"


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = [f"{len(names) - FEW} more"] if len(names) > FEW else []
    return listed([*names[:FEW], *more])


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; "" for none."""
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def kind(check: Record) -> str:
    """A check's kind with the name that it stands in relation to: `identical base/before`."""
    return f"{check['kind']} {check.get('other') or ''}".rstrip()


def tells_worst(check: Record) -> bool:
    """Whether a check's message only tells the worst element, which a report that shows elements has anyway."""
    return " out of tolerance, worst" in check["message"]


def flat(record: Record, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested facts, such as those of an environment, by dotted names: `framework.torch.version`."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def plain(value: object) -> str:
    """A fact as text, lists with spaces between."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def headline(lab: Record) -> str:
    """`lora passed`, with what narrows or loosens that word right behind it."""
    words = f"{lab['name']} {STATUS.get(lab['status'], lab['status'])}"
    return f"{words}, narrowed by {' '.join(lab['narrowed'])}" if lab["narrowed"] else words


def verdict(lab: Record) -> list[str]:
    """The parts of a config's verdict line, headline first."""
    parts = [headline(lab), implementation(lab), _checks(lab), finding(lab)]
    if lab["loosened"]:
        parts.append(count(len(lab["loosened"]), "tolerance") + " loosened")
    parts.append(_margin(lab))
    hits, controls = caught(lab)
    parts.append(f"{hits}/{controls} faults caught" if controls else "no faults tried")
    unseen = sum(c["status"] == "unseen" for c in lab["controls"])
    parts.append(f"{unseen} can't be seen in {lab.get('precision', 'this precision')}" if unseen else "")
    return [p for p in parts if p]


def implementation(lab: Record) -> str:
    """Whose implementation was judged, `linear is mine.py:fused (peft 0.17.1)`; "" where it was the lab's own."""
    return ", ".join(f"{s['part']} is {s['source']}{_libraries(s)}" for s in lab.get("swaps", ()))


def _libraries(swap: Record) -> str:
    return f" ({', '.join(swap['libraries'])})" if swap["libraries"] else ""


def finding(lab: Record) -> str:
    """What a red verdict is about: a stage that failed, else a known fault, else where it begins; "" where it is green.

    The known fault is that of the check where it begins, or one that explains half of the failed checks.
    """
    first, failure = beginning(lab), next(iter(lab["failures"]), "").partition("\n")[0]
    if first is None or any(stage["status"] != "ok" for stage in lab["stages"]):
        return failure if len(failure) <= SENTENCE else f"{failure[:SENTENCE]}…"
    found = [DISTANCE.sub("", c["diagnosis"] or "") for c in lab["checks"] if c["status"] != "passed"]
    own, common = DISTANCE.sub("", first["diagnosis"] or ""), max(filter(None, found), key=found.count, default="")
    for said in (own, common):
        if names_a_fault(said) and (said == own or 2 * found.count(said) >= len(found)):
            return said
    if len(found) == 1:
        return own
    return f"first at {first['name']}{own and f': {own}'}"


def names_a_fault(diagnosis: str) -> bool:
    """Whether a diagnosis is a known fault that nothing denies."""
    return diagnosis.startswith(EQUALS) and DENIED not in diagnosis


def count(n: int, noun: str) -> str:
    """`1 check`, `2 checks`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _checks(lab: Record) -> str:
    failed = len(failing(lab))
    total = count(len(lab["checks"]), "check")
    return f"{failed} of {total} failed" if failed else total


def _margin(lab: Record) -> str:
    check = telling(lab)
    return f"{decades(check)} ({check['name']})" if check else ""


def decades(check: Record) -> str:
    """`7.4 decades left`, `8.1 decades over`, `3 of 12 differ` where no difference is allowed, or `not comparable`."""
    headroom = number(check.get("headroom"))
    if check["status"] != "passed" and all_or_nothing(check) and check["out_of_tolerance"]:
        return f"{check['out_of_tolerance']} of {check['count']} {ALL_OR_NOTHING[check['kind']]}"
    if check["status"] != "passed" and headroom > 0:
        return "inside a limit that says nothing"
    if math.isnan(headroom) or (math.isinf(headroom) and check["status"] != "passed"):
        return "not comparable"
    return f"{abs(headroom):.1f} decades {'left' if check['status'] == 'passed' else 'over'}"


def torch_version(report: Record) -> str:
    """The torch version of the framework side, "?" where it is not known."""
    torch = report.get("environment", {}).get("framework", {}).get("torch", "?")
    return str(torch.get("version", "?") if isinstance(torch, Mapping) else torch)


def footer(report: Record, bundle: str) -> list[str]:
    """The parts of a verdict line that belong to the whole run."""
    parts = [f"torch {torch_version(report)}", f"{number(report['run']['seconds']):.1f} s", bundle]
    return [f"no regression since {report['baseline']['a']['id']}", *parts] if held(report) else parts


def held(report: Record) -> bool:
    """Whether there is a baseline and nothing got worse since then."""
    return "baseline" in report and report["baseline"]["run"]["exit_code"] == 0


def again(lab: Record, bundle: str) -> Sequence[str]:
    """The command that runs a failed config again, narrowed to its failed checks when nothing else is wrong."""
    names = [] if trouble(lab) else list(dict.fromkeys(c["name"] for c in failing(lab)))
    few = names if len(names) <= 10 else []  # noqa: PLR2004 - a command that still fits on a screen
    swaps = [word for s in lab.get("swaps", ()) for word in ("--swap", f"{s['part']}={s['source']}")]
    for option, usual in (("precision", "float64"), ("device", "cpu")):
        swaps += [f"--{option}", lab[option]] if lab.get(option, usual) != usual else []
    return ["lab", "run", f"{bundle}/{lab['name']}/config.yaml", *swaps, *(w for n in few for w in ("--only", n))]
