import io
import subprocess
import sys
from pathlib import Path

import pytest

from cli.output import Look, Progress, look

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_has_no_width_and_no_colour():
    assert look(io.StringIO(), {}) == Look(None, colour=False)


@pytest.mark.parametrize(
    ("environ", "colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_has_colour_unless_told_otherwise(environ, colour):
    assert look(Terminal(), environ).colour is colour


def test_progress_is_plain_lines_where_there_is_no_terminal():
    stream = io.StringIO()
    progress = Progress(stream, quiet=False)
    progress("drawing inputs")
    progress.clear()
    assert stream.getvalue() == "drawing inputs\n"


def test_progress_overwrites_itself_on_a_terminal_and_leaves_nothing():
    stream = Terminal()
    progress = Progress(stream, quiet=False)
    progress("drawing inputs")
    progress.clear()
    assert stream.getvalue() == "\r\x1b[Kdrawing inputs\r\x1b[K"


def test_quiet_progress_says_nothing():
    stream = Terminal()
    Progress(stream, quiet=True)("drawing inputs")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "code", ["from cli.output import emit; emit('x' * 10**6)", "from cli.main import main; main(['-h'])"]
)
def test_a_reader_that_goes_away_is_no_error(code):
    command = [sys.executable, "-c", f"import sys; sys.stdin.read(); {code}"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    child.stdin.close()
    errors = child.stderr.read()
    child.stderr.close()
    assert (child.wait(30), errors) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: there is no /dev/full")
@pytest.mark.parametrize("words", ["list", "-h"])
def test_a_full_disk_behind_stdout_is_a_sentence(words):
    code = f"import sys; from cli.main import main; sys.argv[1:] = ['{words}']; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (3, b"lab: stdout: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_reason_to_fail(closed):
    code = "import sys; from cli.main import main; sys.argv[1:] = ['list']; main()"
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
