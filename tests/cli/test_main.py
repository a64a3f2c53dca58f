import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.early import asked
from cli.main import main
from labs.core.errors import CannotComplete, NothingCompared, RequestError

ROOT = Path(__file__).parents[2]
SLOW = ("numpy", "pydantic", "rich", "torch", "yaml")

ERRORS = [
    (RequestError("configs/lora.yaml:7: rank: got 0, expected an integer >= 1"), 2),
    (CannotComplete("no torch"), 3),
    (ZeroDivisionError("division by zero"), 4),
    (BrokenPipeError(32, "Broken pipe"), 4),
    (NothingCompared("--only x/* matches no item"), 5),
    (KeyboardInterrupt(), 130),
]

USAGE = [
    [],
    ["run", "--nonsense"],
    ["run", "--seed", "-1"],
    ["run", "--threads", "0"],
    ["run", "--timeout", "0"],
    ["nonsense"],
    ["show"],
    ["show", "lora", "--yaml", "--schema"],
]


@pytest.fixture
def failing(monkeypatch):
    """`lab list` that raises what the test says."""

    def fail_with(error):
        def action():
            raise error

        monkeypatch.setattr("cli.list._list", action)

    return fail_with


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_each_error_has_its_exit_code(failing, error, code):
    failing(error)
    assert main(["list"]) == code


def test_an_error_is_a_sentence_a_line_on_stderr(failing, capsys):
    failing(RequestError("rank: got 0,  expected an integer >= 1\n\nalpha: got x\n"))
    main(["list"])
    assert capsys.readouterr() == ("", "lab: rank: got 0, expected an integer >= 1\nalpha: got x\n")


def test_a_bug_leaves_its_traceback_in_a_log(failing, capsys):
    failing(ZeroDivisionError("division by zero"))
    main(["list"])
    sentence = capsys.readouterr().err
    log = Path(sentence.split()[-1])
    assert sentence.startswith("lab: a bug in framework-lab: ZeroDivisionError: division by zero; the traceback is in")
    assert "in action" in log.read_text()
    log.unlink()


def test_a_bug_without_a_place_for_its_log_is_still_told(failing, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    failing(ZeroDivisionError("division by zero"))
    assert main(["list"]) == 4
    assert "no log could be written (No space left on device)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [*USAGE, ["run", "--format", "xml"]])
def test_wrong_usage_is_exit_code_2_and_one_sentence(words, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("words", USAGE)
def test_with_format_json_wrong_usage_is_one_document(words, capsys):
    expected = 2
    assert main([*words, "--format=json"]) == expected
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "framework-lab/report/1"
    assert (document["run"]["status"], document["run"]["exit_code"], document["labs"]) == ("error", expected, [])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--format", "json"], "json"),
        (["--format=json"], "json"),
        (["--format", "json", "--format", "terminal"], "terminal"),
        (["--", "--format", "json"], None),
        (["--format"], None),
        (["json"], None),
    ],
)
def test_the_format_is_read_where_typer_would_read_it(words, expected):
    assert asked(words, "--format") == expected


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("framework-lab")


def python(code, **environ):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
    )


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["list"], ["--version"]])
def test_nothing_slow_is_imported_for(words):
    code = f"import sys; from cli.main import main; code = main({words}); loaded = set(sys.modules) & set({SLOW}); "
    assert python(code + "print(loaded, file=sys.stderr); sys.exit(code)").stderr == "set()\n"


@pytest.mark.parametrize(("words", "command"), [(["show", "lora", "--part"], "lab show"), (["--nope"], "lab")])
def test_a_wrong_option_names_the_help_of_its_command(words, command, capsys):
    assert main(words) == 2
    assert f"(see {command} --help)" in capsys.readouterr().err


def test_the_help_has_a_whole_sentence_for_every_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["--help"])
    lines = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_the_shell_gets_config_names_without_slow_imports():
    code = (
        "import atexit, sys; from cli.main import main; "
        f"atexit.register(lambda: print(set(sys.modules) & set({SLOW}), file=sys.stderr)); main([])"
    )
    done = python(code, _LAB_COMPLETE="complete_bash", COMP_WORDS="lab run lor", COMP_CWORD="2")
    assert "lora" in done.stdout.split()
    assert done.stderr == "set()\n"


def test_the_process_ends_with_its_answer_complete_and_without_pythons_clean_up():
    code = (
        "import atexit, sys; atexit.register(print, 'late'); from cli.main import main; sys.argv[1:] = ['list']; main()"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "contrastive" in done.stdout
    assert "late" not in done.stdout


@pytest.mark.parametrize(("words", "code"), [(["nonsense"], 2), (["show", "nothing-like-this"], 2)])
def test_the_exit_code_survives(words, code):
    assert python(f"import sys; from cli.main import main; sys.argv[1:] = {words}; main()").returncode == code


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_lets_the_command_clean_up(sent):
    code = (
        "import sys, time, cli.list\n"
        "def action():\n"
        "    try:\n        print('ready', flush=True); time.sleep(60)\n"
        "    finally:\n        print('cleaned')\n"
        "cli.list._list = action\n"
        "from cli.main import main; sys.exit(main(['list']))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(sent)
    assert child.communicate(timeout=30) == (b"cleaned\n", b"lab: interrupted\n")
    assert child.returncode == 130
