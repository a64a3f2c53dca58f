import dataclasses
import json
import os
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

import labs
from labs.core import config, registry
from labs.core.errors import RequestError
from labs.core.items import Tolerance
from labs.core.loading import validation
from labs.core.setting import rebuild, setting

SAMPLE = Path(__file__).parent / "sample_lab"
LAB = registry.load(str(SAMPLE))
Config = LAB.config


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write c.yaml with the sample lab, in a folder of its own that is the current one."""
    monkeypatch.chdir(tmp_path)

    def _write(text, name="c.yaml"):
        path = Path(name)
        path.write_text(f"lab: {SAMPLE}\n{text}")
        return name

    return _write


def sentence(name, *changes, **options):
    with pytest.raises(RequestError) as caught:
        config.resolve(name, changes, **options)
    return str(caught.value)


PROBLEMS = {
    "rank: 0": "rank: got 0, expected an integer >= 1",
    'rank: "3"': 'rank: got "3", expected an integer >= 1',
    "rank: true": "rank: got true, expected an integer >= 1",
    "rank: 3.0": "rank: got 3.0, expected an integer >= 1",
    "rank:": "rank: got nothing, expected an integer >= 1",
    "rank: 017": 'rank: got "017", expected an integer >= 1',
    "alpha: .nan": "alpha: got .nan, expected a finite number",
    "alpha: 1e400": "alpha: got .inf, expected a finite number",
    "alpha: true": "alpha: got true, expected a finite number",
    "bias: off": 'bias: got "off", expected true or false',
    "bias: 1": "bias: got 1, expected true or false",
    "loss: mean": 'loss: got "mean", expected one of cross_entropy, squared_error, "off"',
    "bits: 4.0": "bits: got 4.0, expected one of 4, 8",
    "bits: true": "bits: got true, expected one of 4, 8",
    "shares: 3": "shares: got 3, expected a list, each element an integer >= 1",
    "shares: [1, 0]": "shares.1: got 0, expected an integer >= 1",
    "window: [1]": "window: got [1], expected a list of 2: an integer, a finite number",
    "window: [1, 2, 3]": "window: got [1, 2, 3], expected a list of 2: an integer, a finite number",
    "window: [1, x]": 'window.1: got "x", expected a finite number',
    "tensors: 3": "tensors: got 3, expected a text or null",
    "label: 1e3": "label: got 1000.0, expected a text",
    f"label: [{'1, ' * 100}]": f"label: got [{'1, ' * 19}1,…, expected a text",
    "sgd: 3": "sgd: got 3, expected a mapping",
    "sgd: {lr: 10}": "sgd.lr: got 10, expected a finite number > 0 and < 10",
    "sgd: {lrr: 1}": "sgd.lrr: unknown key; did you mean lr?",
    "rnak: 3": "rnak: unknown key; did you mean rank?",
    "sgd: {zz: 1}": "sgd.zz: unknown key; known: steps, lr",
    "field_rank: 3": "field_rank: unknown key; ",
    "seed: -1": "seed: got -1, expected an integer >= 0",
    "threads: 0": "threads: got 0, expected an integer >= 1 and <= 1024",
    "save: some": 'save: got "some", expected one of all, failing, none',
    "tolerances: {a: {atol: 1}}": "tolerances.a.reason: missing, expected a text",
    "tolerances: {a: {reason: ' '}}": "tolerances.a.reason: empty, expected why the default does not do",
    "tolerances: {a: {atol: -1, reason: x}}": "tolerances.a.atol: got -1, expected a finite number >= 0",
    "rank: 65": "rank: 65 is more than the width 64",
}


@pytest.mark.parametrize("text", PROBLEMS)
def test_a_wrong_value_is_one_sentence_with_file_and_line(write, text):
    found = sentence(write(f"# comment\n{text}\n"))
    assert found.startswith(f"c.yaml:3: {PROBLEMS[text]}")
    assert "\n" not in found


def test_a_nested_key_has_its_own_line(write):
    assert sentence(write("sgd:\n  lr: 1\n  steps: -1\n")) == "c.yaml:4: sgd.steps: got -1, expected an integer >= 0"


def test_every_problem_has_a_line_of_its_own(write):
    found = sentence(write("rank: 0\nalpha: x\nrnak: 1\nsgd:\n  steps: x\n")).splitlines()
    assert sorted(line.split(": ")[0] for line in found) == ["c.yaml:2", "c.yaml:3", "c.yaml:4", "c.yaml:6"]


def test_of_very_many_problems_the_first_are_shown(write):
    found = sentence(write("".join(f"zz{i}: 1\n" for i in range(4000)))).splitlines()
    assert (len(found), found[-1]) == (21, "and 3980 more like these")


def test_a_problem_of_two_keys_points_to_the_file_when_neither_is_in_it(write):
    assert sentence(write("rank: 1\nsgd: {steps: 2000}")) == "c.yaml:3: sgd.steps: too many for this rank"


CHANGES = {
    "rank=0": "--set rank=0: got 0, expected an integer >= 1",
    "rank": "--set rank: expected KEY=VALUE, such as seed=3 or sgd.steps=2",
    "=3": "--set =3: expected KEY=VALUE, such as seed=3 or sgd.steps=2",
    "sgd..lr=3": "--set sgd..lr=3: expected KEY=VALUE, such as seed=3 or sgd.steps=2",
    "rank=": "--set rank=: got nothing, expected an integer >= 1",
    "rank=[1": "--set rank=[1: broken YAML while parsing a flow sequence: expected ',' or ']', but got '<stream end>'",
    "rank=*x": '--set rank=*x: aliases are not supported; a text that starts with * needs quotes: "*x…"',
    "sgd.lr=0": "--set sgd.lr=0: got 0, expected a finite number > 0 and < 10",
    "sgd={lr: 0}": "--set sgd={lr: 0}: lr: got 0, expected a finite number > 0 and < 10",
    "rank.x=1": "--set rank.x=1: got a mapping, expected an integer >= 1",
    "rnak=1": "--set rnak=1: unknown key; did you mean rank?",
    "sgd.stesp=1": "--set sgd.stesp=1: unknown key; did you mean steps?",
    "new.key=1": "--set new.key=1: unknown key; known: ",
    "seed=-1": "--set seed=-1: got -1, expected an integer >= 0",
    "save=some": '--set save=some: got "some", expected one of all, failing, none',
    "lab=other": "--set lab=other: the lab of a config can't be changed, name another config",
    "rank=65": "--set rank=65: 65 is more than the width 64",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_change_is_one_sentence_with_the_change(write, change):
    found = sentence(write("rank: 3\nsgd: {lr: 1}\n"), change)
    assert found.startswith(CHANGES[change])
    assert "\n" not in found


def test_a_change_does_not_take_the_blame_for_the_file(write):
    assert sentence(write("sgd: {steps: -1}"), "sgd={lr: 1}").startswith("c.yaml:2: sgd.steps: ")


def test_changes_are_laid_over_the_file_and_the_file_over_the_defaults(write):
    name = write("rank: 3\nalpha: 3\nsgd: {lr: 1}\nseed: 4\ntolerances: {'a/*': {atol: 1e-8, reason: why}}\n")
    found = config.resolve(name, ["rank=5", "sgd.steps=7", "label=a=b", "save=none", "shares=[1, 2]"])
    record = type(Config().sgd)
    expected = Config(rank=5, alpha=3.0, sgd=record(steps=7, lr=1.0), label="a=b", shares=(1, 2))
    assert (found.config, found.seed, found.threads, found.save) == (expected, 4, 1, "none")
    assert type(found.config.alpha) is float
    assert found.tolerances == (("a/*", Tolerance(1e-8, 1e-8, "why")),)


def test_a_tolerance_can_be_changed_by_its_pattern(write):
    found = config.resolve(write(""), ["tolerances.trained/*={atol: 1e-7, reason: why}"])
    assert found.tolerances == (("trained/*", Tolerance(1e-7, 1e-8, "why")),)


def test_seed_and_threads_have_the_last_word(write):
    found = config.resolve(write("seed: 1\nthreads: 1\n"), ["seed=2"], seed=3, threads=4)
    assert (found.seed, found.threads) == (3, 4)


@pytest.mark.parametrize(("option", "value"), [("seed", -1), ("threads", 0), ("seed", 2**63)])
def test_a_wrong_option_is_named(write, option, value):
    assert sentence(write(""), **{option: value}).startswith(f"--{option} {value}: ")


HEADS = {
    "": "c.yaml: empty, expected keys and values that start with lab: NAME",
    "- a": 'c.yaml: got ["a"], expected keys and values',
    "rank: 1": "c.yaml: lab: missing, expected the name of a lab; known: ",
    "lab: 3": "c.yaml:1: lab: got 3, expected the name of a lab or a lab folder",
    "rank: 1\nlab: loar": "c.yaml:2: lab: loar: no such lab; did you mean lora?",
    "lab: ./gone": "c.yaml:1: lab: ",
    "lab: x\nlab: y": "c.yaml:2: lab: given twice, on lines 1 and 2",
}


@pytest.mark.parametrize("text", HEADS)
def test_a_file_without_a_lab_is_a_sentence(write, monkeypatch, text):
    monkeypatch.setattr(labs, "NAMES", ("lora",))
    Path(write("")).write_text(text)
    assert sentence("c.yaml").startswith(HEADS[text].replace('"a"', "a"))


def test_the_lab_is_found_beside_the_file_and_not_beside_the_caller(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").symlink_to(SAMPLE)
    (tmp_path / "there" / "c.yaml").write_text("lab: ./mine\nrank: 7\n")
    monkeypatch.chdir(tmp_path)
    assert config.resolve("there/c.yaml").config.rank == 7


def test_a_lab_folder_is_its_default_config():
    found = config.resolve(str(SAMPLE))
    assert (found.name, found.lab, found.config) == ("sample_lab", LAB, Config())


def test_a_problem_of_a_lab_folder_names_the_folder(monkeypatch):
    monkeypatch.chdir(SAMPLE.parent)
    assert sentence("sample_lab", "rank=0").startswith("--set rank=0: ")
    assert sentence("../core", "rank=0") == "../core: not a lab folder, it has no lab.py"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("lora.yaml", "lora"),
        ("lora-v1.2.yaml", "lora-v1-2"),
        ("..yaml", "config"),
        ("a b;c.yaml", "a-b-c"),
        ("report.json.yaml", "report-json"),
        ("bundle/lora/config.yaml", "lora"),
    ],
)
def test_the_name_is_the_stem_made_safe_for_a_folder(write, file, name):
    Path("bundle/lora").mkdir(parents=True)
    assert config.resolve(write("", file)).name == name


def test_an_unknown_name_offers_the_nearest_config(tmp_path, monkeypatch):
    (tmp_path / "sample.yaml").write_text("lab: lora\n")
    monkeypatch.setattr(registry, "CONFIGS", tmp_path)
    assert sentence("configs/smaple.yaml") == (
        "configs/smaple.yaml: no such config, file or lab folder; did you mean sample?"
    )


def test_a_shipped_config_is_shown_as_the_file_that_one_would_open(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "sample.yaml").write_text(f"lab: {SAMPLE}\nrank: 0\n")
    monkeypatch.setattr(registry, "CONFIGS", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    assert sentence("sample").startswith("configs/sample.yaml:2: rank: got 0")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "c.yaml")
    assert sentence(str(tmp_path / "c.yaml")).endswith("c.yaml: not a regular file")


TEXTS = st.sampled_from(["off", "1e3", "true", "~", "", " a", "a: b", "#", "\u2028", "\x1b[0m", "3", ".5"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
)
FLOATS = st.sampled_from([1e-300, 5e-324, 1e16, 1e22, -0.0, 0.1]) | st.floats(allow_nan=False, allow_infinity=False)
RATES = st.floats(0, 10, exclude_min=True, exclude_max=True)
CONFIGS = st.builds(
    Config,
    rank=st.integers(1, 64),
    alpha=FLOATS,
    bias=st.booleans(),
    loss=st.sampled_from(["cross_entropy", "squared_error", "off"]),
    bits=st.sampled_from([4, 8]),
    shares=st.lists(st.integers(1, 2**63 - 1)).map(tuple),
    window=st.tuples(st.integers(-(2**63), 2**63 - 1), FLOATS),
    tensors=st.none() | TEXTS,
    label=TEXTS,
    sgd=st.builds(type(Config().sgd), steps=st.integers(0, 1000), lr=RATES),
)
LIMITS = st.floats(0, allow_infinity=False)
SETTINGS = st.builds(
    config.Settings,
    name=st.just("c"),
    lab=st.just(LAB),
    config=CONFIGS,
    seed=st.integers(0, 2**63 - 1),
    threads=st.integers(1, 1024),
    save=st.sampled_from(["all", "failing", "none"]),
    tolerances=st.dictionaries(TEXTS, st.builds(Tolerance, LIMITS, LIMITS, TEXTS.filter(str.strip)), max_size=3).map(
        lambda found: tuple(found.items())
    ),
)


@given(SETTINGS)
@limits(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_resolved_settings_come_back_from_their_yaml(tmp_path, settings):
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml(settings), encoding="utf-8")
    assert config.resolve(str(path)) == settings


@given(CONFIGS)
def test_the_framework_process_rebuilds_what_was_validated(value):
    assert rebuild(Config, json.loads(json.dumps(dataclasses.asdict(value)))) == value


def test_commented_yaml_loads_back_to_the_default(tmp_path):
    text = config.commented_yaml(config.resolve(str(SAMPLE)))
    (tmp_path / "sample_lab.yaml").write_text(text)
    assert config.resolve(str(tmp_path / "sample_lab.yaml")) == config.resolve(str(SAMPLE))
    assert "  # learning rate (a finite number > 0 and < 10)\n  lr: 0.1\n" in text
    assert text.startswith("# A lab of the tests\n")


def test_default_replaces_dotted_keys_and_validates():
    assert config.default(LAB) == Config()
    assert config.default(LAB, {"sgd.steps": 1, "shares": (1,)}).sgd.steps == 1
    with pytest.raises(RequestError, match=r"^sample: sgd.steps: got -1, expected an integer >= 0$"):
        config.default(LAB, {"sgd.steps": -1})
    with pytest.raises(RequestError, match=r"^sample: rank: 65 is more than the width 64$"):
        config.default(LAB, {"rank": 65})


def test_changed_replaces_dotted_keys_and_checks_nothing():
    found = config.changed(Config(), {"rank": -1, "sgd.lr": 100.0})
    assert (found.rank, found.sgd.lr, found.sgd.steps) == (-1, 100.0, 5)


def test_the_schema_knows_keys_bounds_defaults_and_choices():
    found = json.loads(json.dumps(config.schema(LAB)))
    keys = found["properties"]
    run_keys = {"lab", "seed", "threads", "save", "tolerances", "from_files"}
    assert set(keys) == run_keys | {f.name for f in dataclasses.fields(Config)}
    assert (found["required"], found["additionalProperties"]) == (["lab"], False)
    assert (keys["rank"]["minimum"], keys["rank"]["default"], keys["rank"]["description"]) == (
        1,
        2,
        "rank of the branch",
    )
    assert (keys["bits"]["enum"], keys["sgd"]["default"]) == ([4, 8], {"steps": 5, "lr": 0.1})
    assert found["$defs"]["Sgd"]["properties"]["steps"]["default"] == 3


@dataclasses.dataclass(frozen=True)
class Reserved:
    seed: int = 3


@dataclasses.dataclass(frozen=True)
class NoDefault:
    rank: int


@dataclasses.dataclass(frozen=True)
class Unheard:
    rank: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class WrongDefault:
    rank: int = setting(0, "rank", ge=1)


@dataclasses.dataclass(frozen=True)
class Names:
    copy: int = 1
    schema: Literal["a"] = "a"
    model_config: bool = True


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Reserved, "Reserved: seed: reserved for the run"),
        (NoDefault, "every key of the config needs a default"),
        (Unheard, "Unheard.rank: a config can't hold a list"),
        (WrongDefault, "sample: rank: got 0, expected an integer >= 1"),
    ],
)
def test_a_lab_whose_config_can_not_be_one_is_told_so(record, words):
    with pytest.raises(RequestError, match=words):
        config.default(dataclasses.replace(LAB, config=record))


def test_a_key_may_have_any_name():
    assert validation.checked(Names, {"copy": 2, "schema": "a", "model_config": False}, str) == Names(
        2, "a", model_config=False
    )
