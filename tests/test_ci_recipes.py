"""action.yml and the recipes of docs/ci.md: well-formed, and every shell step run as it is written."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
RECIPES = {
    Path(name).name: yaml.safe_load(text)
    for name, text in re.findall(r"^```yaml file=(\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
GITHUB = [step for step in RECIPES["framework-lab.yml"]["jobs"]["lab"]["steps"] if "run" in step]
GITLAB = RECIPES[".gitlab-ci.yml"]["framework-lab"]
STEP = ACTION["runs"]["steps"][0]
LAB = """#!/bin/sh
printf '%s\\n' "$@" >words
printf '%s' "$LAB_TORCH_INDEX" >index
[ -z "$MAKES" ] || { mkdir -p "$3/$MAKES" && ln -sfn "$MAKES" "$3/latest"; }
exit "$CODE"
"""


def tool(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def bash(script, folder, **environ):
    """Run a step as GitHub does. Its exit code and what it printed."""
    known = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env={**known, **environ}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def action(tmp_path):
    """Run the action's step in front of a lab that notes its words: (exit code, words, outputs)."""
    tool(tmp_path, "action/scripts/lab", LAB)

    def run(code=0, makes="framework-lab-x", **inputs):
        given = {name: spec["default"] for name, spec in ACTION["inputs"].items()} | inputs
        environ = {
            name: given[value.split("inputs.")[1].split(" ")[0]] if "inputs." in value else str(tmp_path / "action")
            for name, value in STEP["env"].items()
        }
        (tmp_path / "output").write_text("")
        found, _ = bash(
            STEP["run"], tmp_path, **environ, CODE=str(code), MAKES=makes, GITHUB_OUTPUT=str(tmp_path / "output")
        )
        outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
        return found, (tmp_path / "words").read_text().splitlines(), outputs

    return run


FILES = [
    "--out",
    "framework-lab-out",
    "--html",
    "framework-lab-out/report.html",
    "--junit",
    "framework-lab-out/junit.xml",
]


def test_without_inputs_every_lab_is_run(action):
    assert action() == (0, ["run", *FILES, "--"], {"exit-code": "0", "bundle": "framework-lab-out/framework-lab-x"})


def test_inputs_become_options(action):
    _, words, _ = action(
        names="lora  my lab/*\nblock", options="--seed=7\n--set=title=a b\n", baseline="base line", python="/p y/python"
    )
    expected = ["--baseline", "base line", "--python", "/p y/python", "--seed=7", "--set=title=a b", "--"]
    assert words == ["run", *FILES, *expected, "lora", "my", "lab/*", "block"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 5])
def test_the_exit_code_is_handed_on(action, code):
    found, _, outputs = action(code=code)
    assert (found, outputs["exit-code"]) == (code, str(code))


def test_an_older_bundle_is_not_taken_for_this_runs(action):
    action()
    assert "bundle" not in action(code=2, makes="")[2]


@pytest.mark.parametrize("text", ["$(touch hacked)", "`touch hacked`", '"; touch hacked; "', "${{ github.token }}"])
def test_no_input_is_run_by_the_shell(action, tmp_path, text):
    action(names=text, options=text, baseline=text, python=text, **{"torch-index": text})
    assert not (tmp_path / "hacked").exists()
    assert (tmp_path / "index").read_text() == text


def test_no_expression_stands_inside_a_script():
    assert "${{" not in "".join(step["run"] for step in [STEP, *GITHUB])


def test_every_input_is_used_and_every_used_input_is_declared():
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    assert all(spec["description"] for spec in [*ACTION["inputs"].values(), *ACTION["outputs"].values()])


def test_the_page_lists_the_inputs_and_outputs():
    table = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert table == set(ACTION["inputs"])
    assert all(f"`{name}`" in PAGE for name in ACTION["outputs"])


def test_the_recipe_gives_the_action_inputs_that_it_has():
    (step,) = [s for s in RECIPES["framework-lab.yml"]["jobs"]["lab"]["steps"] if "framework-lab@" in s.get("uses", "")]
    assert set(step["with"]) <= set(ACTION["inputs"])


def test_bundles_are_uploaded_under_the_name_that_the_recipe_fetches():
    uploads = [step["with"]["name"] for step in ACTION["runs"]["steps"][1:]]
    name = ACTION["inputs"]["artifact"]["default"]
    assert [u.replace("${{ inputs.artifact }}", name) for u in uploads] == [name, f"{name}-bundle"]
    assert f"--name {name}-bundle --dir baseline" in GITHUB[0]["run"]


def gh(tmp_path, last):
    tool(tmp_path, "bin/gh", f'#!/bin/sh\nprintf "%s\\n" "$*" >>calls\n[ "$2" != list ] || printf "%s" "{last}"\n')
    environ = {"GITHUB_OUTPUT": str(tmp_path / "output"), "REPOSITORY": "o/r"}
    return bash(GITHUB[0]["run"], tmp_path, **environ)


def test_the_last_good_bundle_of_main_is_fetched(tmp_path):
    assert gh(tmp_path, "123")[0] == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1] == "run download 123 --repo o/r --name framework-lab-bundle --dir baseline"
    assert (tmp_path / "output").read_text() == "bundle=baseline\n"


def test_where_main_has_no_good_run_the_step_says_so_and_fails(tmp_path):
    code, said = gh(tmp_path, "")
    assert code == 1
    assert "::error::no run on main has passed yet" in said
    assert "download" not in (tmp_path / "calls").read_text()


def gitlab(tmp_path, branch, **environ):
    """Run the job's script as GitLab does, its lines one after the other in one shell."""
    tool(tmp_path, "framework-lab/scripts/lab", LAB)
    script = "\n".join(GITLAB["script"])
    return bash(script, tmp_path, LAB="framework-lab", CI_COMMIT_BRANCH=branch, CI_DEFAULT_BRANCH="main",
                CI_JOB_TOKEN="", CI_API_V4_URL="u", CI_PROJECT_ID="1", CODE="0", MAKES="", **environ)  # fmt: skip


def test_on_the_default_branch_gitlab_runs_without_a_baseline(tmp_path):
    assert gitlab(tmp_path, "main")[0] == 0
    assert "--baseline" not in (tmp_path / "words").read_text()


def test_a_merge_request_on_gitlab_is_held_against_the_default_branch(tmp_path):
    with zipfile.ZipFile(tmp_path / "artifacts.zip", "w") as archive:
        archive.writestr("lab/framework-lab-20261101T000000Z/report.json", "{}")
        archive.writestr("lab/report.html", "")
    tool(tmp_path, "bin/curl", "#!/bin/sh\ncp artifacts.zip main.zip\n")
    tool(tmp_path, "bin/python", '#!/bin/sh\nexec python3 "$@"\n')
    assert gitlab(tmp_path, "")[0] == 0
    words = (tmp_path / "words").read_text().splitlines()
    assert words[words.index("--baseline") + 1] == "baseline/lab/framework-lab-20261101T000000Z"


def test_a_merge_request_on_gitlab_fails_where_there_is_nothing_to_be_held_against(tmp_path):
    tool(tmp_path, "bin/curl", "#!/bin/sh\nexit 22\n")
    assert gitlab(tmp_path, "")[0] == 22
    assert not (tmp_path / "words").exists()
