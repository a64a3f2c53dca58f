import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labs.core.errors import CannotComplete
from labs.core.launch import Framework
from labs.core.process.exchange import TimedOut

_SPEC = importlib.util.spec_from_file_location("tiny_lab", Path(__file__).with_name("tiny_lab.py"))
tiny = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tiny)

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc and needs the kernel's parent-death signal"
)


@pytest.fixture
def lab(tmp_path):
    return tiny.write_lab(tmp_path)


def soon(condition, seconds=3.0):
    """Whether `condition` becomes true within some seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def without(tmp_path, *modules):
    """An interpreter that cannot import some modules."""
    block = "; ".join(f"sys.modules[{name!r}] = None" for name in modules)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(f"import sys; {block}\n")
    return script(tmp_path / "python", f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" "$@"\n')


def bare_venv(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare/bin/python"


def not_executable(tmp_path):
    file = tmp_path / "python"
    file.write_text("#!/bin/sh\n")
    return file


BAD = [
    (lambda tmp: tmp / "missing", "missing can't be started: No such file or directory; name an interpreter"),
    (lambda tmp: tmp, "can't be started: Permission denied; name an interpreter"),
    (not_executable, "python can't be started: Permission denied; name an interpreter"),
    (lambda tmp: script(tmp / "python", "\x7fELF"), "python can't be started: Exec format error; name an interpreter"),
    (lambda _: Path("/bin/true"), "/bin/true is not a Python interpreter that can start: it exited with 0"),
    (
        lambda _: Path("/bin/cat"),
        "/bin/cat is not a Python interpreter that can start: it exited with 1; its last words: ",
    ),
    (lambda tmp: script(tmp / "python", "#!/bin/sh\nkill -9 $$\n"), "that can start: it was killed by SIGKILL"),
    (bare_venv, "bin/python has no numpy: pip install numpy there, or name another interpreter with --python"),
    (lambda tmp: without(tmp, "numpy"), "python has no numpy: pip install numpy there"),
    (lambda tmp: without(tmp, "torch"), "python has no torch: pip install torch there"),
]


@pytest.mark.parametrize(("interpreter", "sentence"), BAD)
def test_a_bad_interpreter_is_one_sentence(tmp_path, interpreter, sentence):
    with pytest.raises(CannotComplete) as caught, Framework(interpreter(tmp_path), tmp_path / "s") as framework:
        framework.ready(time.monotonic() + 30)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


FAKES = [
    ("numpy", None, "has no torch: pip install torch there, or name another interpreter with --python"),
    ("torch", "raise OSError('libtorch.so: no such file')", "torch can't be imported by "),
    ("torch", "import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV while importing torch"),
    (
        "torch",
        "import os; print('oh no', flush=True); os._exit(7)",
        "exited with 7 while importing torch; its last words: oh no",
    ),
]


@pytest.mark.parametrize(("module", "text", "sentence"), FAKES)
def test_a_torch_that_can_not_be_imported_is_one_sentence(tmp_path, module, text, sentence):
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "numpy.py").write_text("")
    (fakes / f"{module}.py").write_text(text or "")
    python = script(tmp_path / "python", f'#!/bin/sh\nPYTHONPATH={fakes} exec {bare_venv(tmp_path)} "$@"\n')
    with Framework(python, tmp_path / "s") as framework, pytest.raises(CannotComplete) as caught:
        framework.ready(time.monotonic() + 30)
    assert sentence in str(caught.value)


def test_a_python_that_is_too_old_is_named(tmp_path):
    old = script(tmp_path / "python", "#!/bin/sh\necho '{\"hello\": [3, 8]}' >/dev/fd/$4\nsleep 100\n")
    sentence = r"is Python 3.8; the framework side needs 3.10 or newer"
    with Framework(old, tmp_path / "s") as framework, pytest.raises(CannotComplete, match=sentence):
        framework.ready(time.monotonic() + 30)


def test_a_silent_interpreter_times_out(tmp_path):
    silent = script(tmp_path / "python", "#!/bin/sh\nsleep 100\n")
    sentence = r"did not answer within 0.\d+ s, while importing torch"
    with Framework(silent, tmp_path / "s") as framework, pytest.raises(TimedOut, match=sentence):
        framework.ready(time.monotonic() + 0.5)


def test_a_wrapper_that_stays_is_fine_and_leaves_nothing(tmp_path, lab):
    wrapper = script(tmp_path / "python", f'#!/bin/sh\n"{sys.executable}" "$@"\n')
    job = lab.job("forward")
    with Framework(wrapper, tmp_path / "s") as framework:
        group = framework._process
        framework.submit(job)
        assert framework.wait(job.id, time.monotonic() + 60).end == ""
    assert soon(lambda: not tiny.alive(group))


def test_a_torch_in_the_current_folder_is_not_taken(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemError('the wrong torch')")
    monkeypatch.chdir(tmp_path)
    with Framework(None, tmp_path / "s") as framework:
        assert framework.ready()["torch"]["version"]


def test_the_launcher_imports_nothing_slow():
    slow = "{'json', 'dataclasses', 'subprocess', 'typing', 'pathlib', 'numpy'}"
    code = f"import sys; before = set(sys.modules); import labs.core.launch; print({slow} & set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tiny.ROOT)
    assert done.stdout.strip() == "set()"


def until_busy(framework, group):
    """Wait until a hanging stage has started its own child: worker, stage, sleep."""
    framework.ready(time.monotonic() + 60)
    assert soon(lambda: len(tiny.alive(group)) == 3, 10)


@linux_only
def test_closing_leaves_no_process_even_from_a_hanging_stage(tmp_path, lab):
    with Framework(None, tmp_path / "s") as framework:
        group = framework._process
        framework.submit(lab.job("hang"))
        until_busy(framework, group)
    assert soon(lambda: not tiny.alive(group))
    framework.close()


@linux_only
def test_closing_while_torch_is_being_imported_leaves_no_process(tmp_path):
    with Framework(None, tmp_path / "s") as framework:
        group = framework._process
        time.sleep(0.3)
    assert soon(lambda: not tiny.alive(group))


@linux_only
def test_an_interrupt_leaves_no_process(tmp_path, lab):
    groups = []

    def interrupted():
        with Framework(None, tmp_path / "s") as framework:
            groups.append(framework._process)
            framework.submit(lab.job("hang"))
            until_busy(framework, groups[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert soon(lambda: not tiny.alive(groups[0]))


@linux_only
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_worker_is_told_and_takes_its_children_along(tmp_path, lab, number):
    job = lab.job("hang")
    with Framework(None, tmp_path / "s") as framework:
        group = framework._process
        framework.submit(job)
        until_busy(framework, group)
        os.kill(group, number)
        with pytest.raises(CannotComplete, match=r"the framework process .* was killed by SIG(KILL|SEGV)"):
            framework.wait(job.id, time.monotonic() + 10)
        assert soon(lambda: not tiny.alive(group))


def test_a_stopped_framework_answers_with_a_sentence(tmp_path, lab):
    with Framework(None, tmp_path / "s") as framework:
        framework.ready()
    framework.submit(lab.job("forward"))
    with pytest.raises(CannotComplete, match="was closed"):
        framework.wait("job/0")


def test_two_frameworks_work_at_once(tmp_path, lab):
    with Framework(None, tmp_path / "one") as one, Framework(None, tmp_path / "two") as two:
        jobs = [lab.job("forward", "summed"), lab.job("forward")]
        one.submit(jobs[0])
        two.submit(jobs[1])
        assert two.wait(jobs[1].id, time.monotonic() + 60).end == ""
        assert one.wait(jobs[0].id, time.monotonic() + 60).end == ""


REFEREE = """
import importlib.util, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from labs.core.launch import Framework
spec = importlib.util.spec_from_file_location("tiny_lab", {tiny!r})
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)
lab = tiny.Lab(Path({lab!r}))
with Framework(None, Path({lab!r}, "s"), {fork}) as framework:
    print(framework._process, flush=True)
    jobs = [lab.job("hang"), lab.job("summed", "hang", ranks=3)]
    for job in jobs:
        framework.submit(job)
    framework.ready()
    print("ready", flush=True)
    framework.wait(jobs[0].id)
"""


def referee(lab, fork):
    text = REFEREE.format(root=str(tiny.ROOT), tiny=tiny.__file__, lab=str(lab.root), fork=fork)
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def kill(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.wait()
    process.stdout.close()


@linux_only
@pytest.mark.parametrize("seed", range(4))
def test_a_referee_that_is_killed_while_torch_is_imported_leaves_no_process(lab, seed):
    process, group = referee(lab, None)
    time.sleep(random.Random(seed).uniform(0, 1.2))
    kill(process)
    assert soon(lambda: not tiny.alive(group), 2)


@linux_only
@pytest.mark.parametrize(("fork", "number"), [(None, signal.SIGKILL), (None, signal.SIGTERM), (False, signal.SIGKILL)])
def test_a_referee_that_is_killed_while_stages_run_leaves_no_process(lab, fork, number):
    process, group = referee(lab, fork)
    process.stdout.readline()
    time.sleep(random.Random(str(fork)).uniform(0, 1))
    kill(process, number)
    assert soon(lambda: not tiny.alive(group), 2)
