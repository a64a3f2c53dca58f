"""Two environments compared, and what their differences suggest when values moved.

Instruction set, threads and BLAS move more last bits than a torch release does, so they are named before a version is
blamed. None of them makes a check fail by a million ULP: then the code is to be looked at.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from labs.core.difference.classes import Change, Setting
from labs.core.reports.summary import Record, flat

LARGE = 1e6  # ULP: more than an instruction set, threads or a library move a sum
GROUPS = {  # the likeliest cause first; a key belongs to the first group that one of its parts names
    "implementation": (),
    "instruction set": ("cpu", "simd", "cpu_capability", "ATEN_CPU_CAPABILITY", "NPY_DISABLE_CPU_FEATURES"),
    "threads": ("threads", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    "BLAS": ("blas", "MKL_CBWR", "OPENBLAS_CORETYPE"),
    "torch": ("torch",),
    "NumPy": ("numpy",),
    "system": ("os",),
    "Python": ("python", "implementation"),
    "this tool": ("tool",),
}
_BEFORE_VERSIONS = ("instruction set", "threads", "BLAS")
_ABOUT_BUILD = {"Math Kernel Library": "BLAS", "BLAS_INFO": "BLAS", "LAPACK_INFO": "BLAS", "MKL-DNN": "torch"}
_SAID_ELSEWHERE = "CPU capability usage"  # is cpu_capability
_TELLING = ("cpu_capability", "version", "model")  # of several differences of a group these say most
RUN_KEYS = ("threads", "save", "tolerances")  # of a config: they change no input and no formula


def settings(old: Record, new: Record) -> tuple[Setting, ...]:
    """What differs between two environments, likeliest cause first; the command line is no environment.

    What differs in the same way for `referee` and `framework` is named once, without either word.
    """
    before, after = (dict(flat(side)) for side in (old, new))
    found = [s for key in before | after for s in _differing(key, before.get(key), after.get(key))]
    twice = {s for s in found for t in found if s.what == f"referee.{_bare(t)}" and (s.a, s.b) == (t.a, t.b) and s != t}
    both = {_bare(s) for s in twice}
    merged = (replace(s, what=_bare(s)) if _bare(s) in both else s for s in found if s not in twice)
    order = [*GROUPS, ""]
    return tuple(sorted(merged, key=lambda s: (order.index(s.group), not s.what.endswith(_TELLING))))


def _bare(setting: Setting) -> str:
    return setting.what.removeprefix("referee.").removeprefix("framework.")


def run_settings(configs: Mapping[str, tuple[Record, Record]]) -> tuple[Setting, ...]:
    """What differs between the run-level keys of configs: they change no input and no formula."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, (old, new) in configs.items():
        for key in RUN_KEYS:
            if old.get(key) != new.get(key):
                found.setdefault((key, _text(old.get(key)), _text(new.get(key))), []).append(name)
    return tuple(
        Setting(f"{key} of {', '.join(names)}", a, b, "threads" if key == "threads" else "")
        for (key, a, b), names in found.items()
    )


def implementations(labs: Mapping[str, tuple[Record, Record]]) -> tuple[Setting, ...]:
    """Parts that were judged in place of the lab's own, where the two runs differ in that."""
    found = []
    for name, sides in labs.items():
        before, after = ({str(s["part"]): _swap(s) for s in lab.get("swaps", ())} for lab in sides)
        parts = [p for p in dict.fromkeys([*before, *after]) if before.get(p) != after.get(p)]
        own = "the lab's own"
        found += [Setting(f"{p} of {name}", before.get(p, own), after.get(p, own), "implementation") for p in parts]
    return tuple(found)


def _swap(swap: Record) -> str:
    return f"{swap['source']} (sha256 {str(swap['sha256'])[:12]})"


def cause(found: Sequence[Setting], changes: Sequence[Change]) -> str:
    """What the environments suggest for the values that moved, in one sentence; "" when none did."""
    moved = {side for change in changes for side in change.moved}
    if not moved:
        return ""
    relevant = [s for s in found if s.group and _touches(s, moved)]
    versions = [s for s in relevant if s.group in ("torch", "NumPy")]
    largest = max((c.ulp for c in changes if c.change == "regression" and c.ulp is not None), default=0.0)
    if largest > LARGE and not any(s.group in ("implementation", "this tool") for s in relevant):
        also = f" and in {versions[0].group} ({_change(versions[0])})" if versions else ""
        what = f"a check fails by {largest:.1e} ULP, which no instruction set, threads or BLAS explain"
        return f"{what}: look at what changed in the code{also}"
    if not relevant:
        return "the environments do not differ in what moves values: look at what changed in the code"
    first = relevant[0]
    sentence = f"likely cause: {first.group} ({first.what}: {_change(first)})"
    if first.group not in _BEFORE_VERSIONS:
        return sentence
    sentence += "; it moves more last bits than a release does"
    return f"{sentence}, so compare with the same before blaming {versions[0].group}" if versions else sentence


def _touches(setting: Setting, moved: set[str]) -> bool:
    """Whether a setting can have moved these sides: what the referee runs on moves the reference alone."""
    if setting.what.startswith("referee."):
        return "reference" in moved
    framework_alone = setting.what.startswith("framework.") or setting.group in ("implementation", "threads")
    return "observed" in moved or not framework_alone


def _change(setting: Setting) -> str:
    return f"{setting.a} → {setting.b}"


def _differing(key: str, a: object, b: object) -> Iterator[Setting]:
    if a == b or key.startswith("command"):
        return
    if key.endswith("torch.build") and isinstance(a, str) and isinstance(b, str):
        yield from _builds(key, a, b)
    elif isinstance(a, list) and isinstance(b, list):
        lost, gained = (" ".join(_text(x) for x in one if x not in other) or "-" for one, other in ((a, b), (b, a)))
        yield Setting(key, lost, gained, _group(key))
    else:
        yield Setting(key, _text(a), _text(b), _group(key))


def _builds(key: str, a: str, b: str) -> Iterator[Setting]:
    """The lines of two `torch.__config__.show()` that differ, each by its topic: of the flags the telling ones only."""
    one, other = (_build(text) for text in (a, b))
    for topic in one | other:
        if one.get(topic) != other.get(topic):
            group = next((group for word, group in _ABOUT_BUILD.items() if word in topic), "torch")
            yield Setting(f"{key}: {topic}", one.get(topic, "absent"), other.get(topic, "absent"), group)


def _build(text: str) -> dict[str, str]:
    lines = [line.strip(" -") for line in text.splitlines()[1:]]
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith("Build settings:"):
            pairs = (part.strip().partition("=") for part in line.removeprefix("Build settings:").split(","))
            found |= {name: value for name, _, value in pairs if name in _ABOUT_BUILD}
        elif line and _SAID_ELSEWHERE not in line:
            topic = next((word for word in _ABOUT_BUILD if word in line), line.split(":")[0].split()[0])
            found[topic] = line
    return found


def _group(key: str) -> str:
    parts = key.split(".")
    return next((group for group, names in GROUPS.items() if any(part in names for part in parts)), "")


def _text(value: object) -> str:
    return "not set" if value is None else str(value)[:1000]
