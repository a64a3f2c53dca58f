"""The wheel, installed into a fresh environment, works from a folder that knows nothing of the checkout."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = (".py", ".yaml", ".json", ".jinja", ".css", ".js")


def called(*words, cwd=ROOT):
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COLUMNS")}
    return subprocess.run(
        list(map(str, words)), cwd=cwd, capture_output=True, text=True, check=True, env=environ
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    called(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment: the wheel inside, its dependencies borrowed from the environment of this test."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(called(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    called(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    return folder / "bin"


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0] for n in names if ".dist-info/" not in n} == {"cli", "configs", "labs"}


@pytest.mark.parametrize("folder", ["cli", "configs", "labs"])
def test_no_source_file_is_left_out_of_the_wheel(wheel, folder):
    here = {p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*") if p.suffix in SHIPPED}
    assert here <= set(zipfile.ZipFile(wheel).namelist())


def test_the_license_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("LICENSE")]
        assert archive.read(name) == (ROOT / "LICENSE").read_bytes()


def test_what_is_installed_is_not_the_checkout(installed, tmp_path):
    place = called(installed / "python", "-c", "import labs; print(labs.__file__)", cwd=tmp_path)
    assert place.startswith(str(installed.parent))


def test_the_installed_command_lists_the_shipped_configs(installed, tmp_path):
    listed = [line.split()[0] for line in called(installed / "lab", "list", cwd=tmp_path).splitlines() if line]
    assert listed == sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


def test_the_installed_command_knows_its_version(installed, tmp_path):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert called(installed / "lab", "--version", cwd=tmp_path) == f"framework-lab {version}\n"


def pinned():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {w.split(">")[0].split("<")[0].lower() for w in wanted}
    assert names <= {name.lower() for name in pinned()}


def test_pins_name_no_local_builds():
    assert [version for version in pinned().values() if "+" in version] == []


def test_the_license_is_apache_2():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text.splitlines()[1]
    assert text.rstrip().endswith("limitations under the License.")


def test_hatchling_is_there_to_build_with():
    assert importlib.util.find_spec("hatchling")
