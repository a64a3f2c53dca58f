import subprocess
import sys
from pathlib import Path

import pytest

import labs
from labs.core import registry
from labs.core.errors import RequestError

SAMPLE = Path(__file__).parent / "sample_lab"
ROOT = Path(registry.__file__).parents[2]

BROKEN = {
    "1 / 0": "broken/lab.py:1: ZeroDivisionError: division by zero",
    "x = 1\ndef f(:": "broken/lab.py:2: SyntaxError: ",
    "import nothing_of_that_name": "broken/lab.py:1: ModuleNotFoundError: ",
    "from .missing import x": "broken/lab.py:1: ModuleNotFoundError: ",
    "raise SystemExit(3)": "broken/lab.py:1: SystemExit: 3",
    "pass": "broken/lab.py: defines no LAB",
    "LAB = 3": "broken/lab.py: LAB is a int, expected a labs.core.lab.Lab",
}


@pytest.fixture
def configs(tmp_path, monkeypatch):
    folder = tmp_path / "configs"
    folder.mkdir()
    monkeypatch.setattr(registry, "CONFIGS", folder)
    return folder


def copy_of_sample(folder, title="A lab of the tests"):
    folder.mkdir(parents=True)
    for name in ("config.py", "lab.py"):
        (folder / name).write_text((SAMPLE / name).read_text().replace("A lab of the tests", title))
    return folder


def test_shipped_reads_the_title_and_the_lab_from_the_head(configs):
    (configs / "one.yaml").write_text("# One: a title\n# more\nlab: lora # not this\nrank: 3\n")
    (configs / "bare.yaml").write_text("lab: block\n# too late\n")
    assert list(registry.shipped()) == sorted(registry.shipped())
    assert {name: entry[:2] for name, entry in registry.shipped().items()} == {
        "bare": ("block", ""),
        "one": ("lora", "One: a title"),
    }


def test_listing_imports_nothing_slow():
    code = (
        "import sys; from labs.core import registry; registry.shipped(); "
        "print(sorted({'yaml', 'pydantic', 'numpy', 'torch', 'difflib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["one", "oen", "configs/on.yaml", "", "x" * 5000, "nul\0"])
def test_locate_finds_a_shipped_config_or_names_the_nearest(configs, name):
    (configs / "one.yaml").write_text("lab: lora\n")
    if name == "one":
        assert registry.locate(name) == configs / "one.yaml"
        return
    with pytest.raises(RequestError, match=r"no such config, file or lab folder; (did you mean|known:) one"):
        registry.locate(name)


def test_locate_takes_a_path_as_it_is(configs):
    (configs / "mine.yml").write_text("")
    assert registry.locate(str(configs / "mine.yml")) == configs / "mine.yml"


def test_a_shipped_lab_is_imported_by_name(monkeypatch, tmp_path):
    copy_of_sample(tmp_path / "sample_shipped")
    monkeypatch.setattr(labs, "NAMES", ("sample_shipped",))
    monkeypatch.setattr(labs, "__path__", [*labs.__path__, str(tmp_path)])
    lab = registry.load("sample_shipped")
    assert (lab.package, lab.path) == ("labs.sample_shipped", tmp_path / "sample_shipped")


@pytest.mark.parametrize("name", ["loar", ""])
def test_an_unknown_lab_offers_the_nearest(monkeypatch, name):
    monkeypatch.setattr(labs, "NAMES", ("lora",))
    with pytest.raises(RequestError, match=r"no such lab; (did you mean|known:) lora"):
        registry.load(name)


def test_a_folder_is_imported_as_a_package_of_its_own():
    lab = registry.load(str(SAMPLE))
    assert (lab.package, lab.path, lab.config.__module__) == (
        "user_lab_sample_lab",
        SAMPLE.resolve(),
        "user_lab_sample_lab.config",
    )


def test_two_folders_of_one_name_do_not_meet(tmp_path):
    first = registry.load(str(copy_of_sample(tmp_path / "a" / "twin-lab", "first")))
    second = registry.load(str(copy_of_sample(tmp_path / "b" / "twin-lab", "second")))
    assert [(lab.title, lab.package) for lab in (first, second)] == [
        ("first", "user_lab_twin_lab"),
        ("second", "user_lab_twin_lab_2"),
    ]
    assert first.config is not second.config
    assert registry.load(str(tmp_path / "a" / "twin-lab")) == first


def test_an_init_file_is_run(tmp_path):
    folder = copy_of_sample(tmp_path / "with_init")
    (folder / "__init__.py").write_text("TITLE = 'from the package'\n")
    (folder / "lab.py").write_text((folder / "lab.py").read_text() + "\nfrom . import TITLE\n")
    registry.load(str(folder))
    assert sys.modules["user_lab_with_init"].TITLE == "from the package"


@pytest.mark.parametrize("source", BROKEN)
def test_a_lab_that_can_not_be_imported_is_a_sentence_with_its_place(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    Path("broken").mkdir()
    Path("broken/lab.py").write_text(source)
    with pytest.raises(RequestError) as caught:
        registry.load("./broken")
    assert str(caught.value).startswith(BROKEN[source])


def test_a_repaired_lab_loads_after_a_failed_attempt(tmp_path):
    folder = copy_of_sample(tmp_path / "repaired")
    right = (folder / "lab.py").read_text()
    (folder / "lab.py").write_text("1 / 0")
    with pytest.raises(RequestError, match=r"ZeroDivisionError"):
        registry.load(str(folder))
    (folder / "lab.py").write_text(right)
    assert registry.load(str(folder)).title == "A lab of the tests"


@pytest.mark.parametrize(("name", "why"), [("empty", "it has no lab.py"), ("./gone", "no such folder")])
def test_a_folder_that_is_no_lab_says_why(tmp_path, monkeypatch, name, why):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    with pytest.raises(RequestError, match=f"not a lab folder, {why}"):
        registry.load(name)


def test_a_lab_whose_path_is_no_utf_8_is_refused(tmp_path):
    folder = tmp_path / "lab\udcff"
    folder.mkdir()
    (folder / "lab.py").write_text("1 / 0")
    with pytest.raises(RequestError, match="the path of a lab stands in its config, so it has to be UTF-8"):
        registry.load(str(folder))
