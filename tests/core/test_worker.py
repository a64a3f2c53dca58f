import dataclasses
import importlib.util
import re
import time
from pathlib import Path

import numpy as np
import pytest

from labs.core.launch import Framework
from labs.core.process.exchange import TimedOut
from labs.core.process.pack import pack_file, read_pack

_SPEC = importlib.util.spec_from_file_location("tiny_lab", Path(__file__).with_name("tiny_lab.py"))
tiny = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tiny)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return tiny.write_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("scratch")) as started:
        yield started


def run(framework, job, seconds=60):
    framework.submit(job)
    return framework.wait(job.id, time.monotonic() + seconds)


def test_a_stage_yields_its_items_as_files(framework, lab):
    job = lab.job("forward")
    result = run(framework, job)
    x = np.arange(6.0).reshape(2, 3) + 1
    assert result.outcomes[0].items == ("y", "grad/x", "flag", "count", "size")
    assert np.array_equal(tiny.read(job.tasks[0], "y"), 8 * x @ x.T)
    assert tiny.read(job.tasks[0], "grad/x").dtype == np.float64


@pytest.mark.parametrize(
    ("name", "value", "dtype"), [("flag", True, bool), ("count", 3, np.int64), ("size", 0.5, float)]
)
def test_plain_numbers_become_arrays_without_axes(framework, lab, name, value, dtype):
    job = lab.job("forward")
    run(framework, job)
    array = tiny.read(job.tasks[0], name)
    assert (array.shape, array.dtype, array[()]) == ((), dtype, value)


def test_a_clean_job_says_how_long_and_how_large(framework, lab):
    result = run(framework, lab.job("forward"))
    assert result.end == ""
    assert result.peak_rss_bytes > 50 << 20
    assert result.seconds > result.outcomes[0].seconds > 0


def test_the_worker_says_what_it_is(framework):
    facts = framework.ready()
    assert facts["torch"]["cpu_capability"]
    assert facts["numpy"] == np.__version__


def test_the_ready_line_imports_no_compiler(tmp_path, lab):
    source = tmp_path / "modules.py"
    source.write_text("import sys\n\ndef fail(x):\n    raise ValueError('torch._dynamo' in sys.modules)\n")
    with Framework(None, tmp_path / "scratch") as framework:
        assert run(framework, lab.job("forward", swap={"double": f"{source}:fail"})).outcomes[0].error.endswith("False")


def test_every_task_gets_inputs_of_its_own(framework, lab):
    job = lab.job("mutate", "mutate")
    run(framework, job)
    assert np.array_equal(tiny.read(job.tasks[0], "before"), tiny.read(job.tasks[1], "before"))
    assert np.load(lab.root / "inputs/x.npy").all()


def test_every_task_starts_from_the_same_torch_state(framework, lab):
    job = lab.job("draw", "leaky", "draw")
    run(framework, job)
    assert np.array_equal(tiny.read(job.tasks[0], "draw"), tiny.read(job.tasks[2], "draw"))
    assert tiny.read(job.tasks[2], "grad")


def test_items_with_the_bits_of_the_good_run_are_not_written_again(framework, lab):
    first = lab.job("forward", packed=True)
    run(framework, first)
    second = lab.job("forward", packed=True, swap={"double": "fault:triple"}, good=first.tasks[0].out)
    outcome = run(framework, second).outcomes[0]
    assert outcome.items == ("y", "grad/x")
    assert outcome.same == ("flag", "count", "size")
    good, changed = (read_pack(pack_file(job.tasks[0].out, "forward", 0, 1)) for job in (first, second))
    assert list(changed) == ["y", "grad/x"]
    assert np.array_equal(4 * changed["y"], 9 * good["y"])


def test_a_preloaded_module_that_is_missing_stops_nothing(framework, lab):
    assert run(framework, lab.job("forward")).end == ""


def test_more_threads_give_the_same_small_result(framework, lab):
    one, two = lab.job("forward"), lab.job("forward", threads=2)
    assert run(framework, two).end == run(framework, one).end == ""
    assert np.array_equal(tiny.read(one.tasks[0], "y"), tiny.read(two.tasks[0], "y"))


SWAPS = [
    ("{file}:quadruple", 4.0),
    ("fault:triple", 3.0),
    ("torch:square", None),
]


@pytest.mark.parametrize(("source", "factor"), SWAPS)
def test_a_part_can_be_swapped(framework, lab, tmp_path, source, factor):
    file = tmp_path / "mine.py"
    file.write_text("def quadruple(x):\n    return 4 * x\n")
    job = lab.job("forward", swap={"double": source.format(file=file)})
    assert run(framework, job).outcomes[0].status == "ok"
    x = np.arange(6.0).reshape(2, 3) + 1
    doubled = factor * x if factor else x**2
    assert np.array_equal(tiny.read(job.tasks[0], "y"), 2 * doubled @ doubled.T)


BAD_SWAPS = [
    ({"double": "fault:broken"}, "double", "ValueError: invalid literal for int()"),
    ({"double": "fault:triple", "mix": "fault:broken"}, "mix", "ValueError: invalid literal"),
    ({"double": "fault:wrong_backward"}, "double", "ArithmeticError: backward"),
    ({"double": "fault:nothing"}, "double", "part double: fault has no callable 'nothing'"),
    ({"double": "fault:NOT_CALLABLE"}, "double", "part double: fault has no callable 'NOT_CALLABLE'"),
    ({"double": "no/such/file.py:f"}, "double", "part double: there is no file no/such/file.py"),
    ({"double": "no_such_module:f"}, "double", "part double needs the module 'no_such_module'"),
    ({"double": "mine.py"}, "double", "part double: 'mine.py' is not FILE.py:NAME or MODULE:NAME"),
    ({"douple": "fault:triple"}, "", "there is no part 'douple'; the parts are double, mix"),
]


@pytest.mark.parametrize(("swap", "where", "error"), BAD_SWAPS)
def test_a_bad_swap_is_named(framework, lab, swap, where, error):
    outcome = run(framework, lab.job("forward", swap=swap)).outcomes[0]
    assert (outcome.status, outcome.where) == ("raised", where)
    assert outcome.error.startswith(error)


RAISED = [
    ("fail", "ZeroDivisionError: division by zero"),
    ("fail_abroad", "ValueError: größer als 1 ≠ \\udcff"),
    ("fail_silently", "Unprintable: (its text can't be printed)"),
    ("sys_exit", "SystemExit: enough"),
    ("ask", "EOFError: EOF when reading a line"),
    ("bad_none", "stage bad_none returned None, expected a mapping of item names to tensors"),
    ("bad_list", "stage bad_list returned a list, expected a mapping of item names to tensors"),
    ("bad_float16", "item y has dtype torch.float16, expected float64, float32, an integer or bool"),
    ("bad_complex", "item y has dtype torch.complex128, expected float64, float32, an integer or bool"),
    ("bad_sparse", "item y has layout torch.sparse_coo, expected a dense tensor"),
    ("bad_meta", "NotImplementedError: Cannot copy out of meta tensor; no data!"),
    ("bad_text", "item y is a str, expected a tensor, a bool, an int or a float"),
    ("bad_none_item", "item y is None, expected a tensor, a bool, an int or a float"),
    ("bad_huge", "item y is an integer that does not fit into 64 bits"),
    ("nowhere", "there is no stage 'nowhere'; the stages are "),
    *[(f"bad_{n}", "item name ") for n in ("up", "absolute", "inside", "upper", "empty", "newline", "number")],
]


@pytest.mark.parametrize(("stage", "error"), RAISED)
def test_a_task_that_raises_is_told_and_the_next_one_runs(framework, lab, stage, error):
    result = run(framework, lab.job(stage, "forward"))
    assert [outcome.status for outcome in result.outcomes] == ["raised", "ok"]
    assert result.outcomes[0].error.startswith(error)
    assert result.end == ""


def test_a_raised_error_keeps_its_traceback(framework, lab):
    outcome = run(framework, lab.job("fail")).outcomes[0]
    assert "return 1 / 0" in outcome.traceback


def test_a_name_that_climbs_out_leaves_no_file(framework, lab):
    job = lab.job("bad_up", "bad_inside")
    run(framework, job)
    assert not any(list(Path(task.out).parent.glob("*.npy")) for task in job.tasks)


ENDS = [
    ("segfault", "was killed by SIGSEGV, in stage segfault"),
    ("leave", "exited with 3 before it had answered, in stage leave"),
    ("leave_politely", "exited with 0 before it had answered, in stage leave_politely"),
    ("die", "was killed by SIGKILL, in stage die"),
    ("rubbish", "sent an answer that can't be read, in stage rubbish"),
    ("wrong_shape", "sent an answer that can't be read, in stage wrong_shape"),
    ("deaf", "exited with 1 before it had answered, in stage deaf"),
]


@pytest.mark.parametrize(("stage", "end"), ENDS)
def test_a_job_that_ends_badly_says_how_and_keeps_what_it_had(framework, lab, stage, end):
    result = run(framework, lab.job("forward", stage, "forward"))
    assert result.end == end
    assert [(outcome.task, outcome.status) for outcome in result.outcomes] == [(0, "ok")]


def test_a_crash_leaves_last_words(framework, lab):
    tail = run(framework, lab.job("segfault")).log_tail
    assert "about to touch address 0" in tail
    assert "in segfault" in tail


def test_megabytes_of_prints_disturb_nothing(framework, lab):
    job = lab.job("shout")
    result = run(framework, job)
    assert (result.end, result.outcomes[0].status) == ("", "ok")
    assert Path(job.log).stat().st_size > 4_000_000
    assert result.log_tail.endswith("the last words\n")


def test_a_log_that_can_not_be_written_ends_the_job_only(framework, lab):
    job = dataclasses.replace(lab.job("forward"), log="/dev/null/log.txt")
    assert run(framework, job).end == "exited with 1 before it had answered, before its first stage"
    assert run(framework, lab.job("forward")).end == ""


def test_a_hanging_job_is_stopped_and_the_others_are_answered(framework, lab):
    hanging, other = lab.job("forward", "hang"), lab.job("forward")
    framework.submit(hanging)
    framework.submit(other)
    with pytest.raises(TimedOut, match=r"did not answer within .* s, in stage hang"):
        framework.wait(hanging.id, time.monotonic() + 1)
    assert framework.wait(other.id, time.monotonic() + 60).end == ""
    partial = framework.wait(hanging.id, time.monotonic() + 60)
    assert [outcome.status for outcome in partial.outcomes] == ["ok"]
    assert partial.end.startswith("was stopped after ")
    assert re.search(r"in stage hang at .*torch_impl\.py:\d+$", partial.end)


def test_many_large_orders_never_block(framework, lab):
    jobs = [lab.job(*["draw"] * 20) for _ in range(10)]
    for job in jobs:
        framework.submit(job)
    results = [framework.wait(job.id, time.monotonic() + 60) for job in jobs]
    assert all(len(result.outcomes) == 20 for result in results)


def test_ranks_meet(framework, lab):
    job = lab.job("summed", "summed", ranks=3)
    result = run(framework, job)
    assert result.end == ""
    assert [(outcome.task, outcome.rank) for outcome in result.outcomes] == [(t, r) for t in (0, 1) for r in range(3)]
    assert [tiny.read(job.tasks[1], f"rank{rank}/sum").tolist() for rank in range(3)] == [[6.0, 6.0]] * 3


@pytest.mark.parametrize("size", ["1", "2"])
def test_ranks_meet_under_a_launcher_whatever_group_it_told_of(tmp_path, monkeypatch, lab, size):
    told = {"RANK": "0", "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    source = tmp_path / "told.py"
    source.write_text(f"import os\n\ndef fail(x):\n    raise ValueError(sorted({set(told)} & set(os.environ)))\n")
    job, asked = lab.job("summed", ranks=2), lab.job("forward", swap={"double": f"{source}:fail"})
    with Framework(None, tmp_path / "scratch") as framework:
        assert run(framework, job).end == ""
        assert run(framework, asked).outcomes[0].error == "ValueError: []"
    assert [tiny.read(job.tasks[0], f"rank{rank}/sum").tolist() for rank in range(2)] == [[3.0, 3.0]] * 2


def test_a_rank_that_dies_ends_the_job_at_once(framework, lab):
    began = time.monotonic()
    result = run(framework, lab.job("summed", "wait_for_rank_1", "summed", ranks=3))
    assert result.end == "rank 1 was killed by SIGSEGV, in stage wait_for_rank_1"
    assert {outcome.task for outcome in result.outcomes if outcome.status == "ok"} == {0}
    assert time.monotonic() - began < 20  # gloo alone would wait for half an hour


def test_the_errors_of_siblings_are_echoes_of_a_rank_that_died(framework, lab):
    result = run(framework, lab.job("summed", "rank_1_dies_late", "summed", ranks=3))
    assert result.end == "rank 1 was killed by SIGKILL, in stage rank_1_dies_late"
    assert [(outcome.task, outcome.status) for outcome in result.outcomes] == [(0, "ok")] * 3


def test_the_rank_that_hangs_is_named_and_not_those_that_wait_for_it(framework, lab):
    hanging = lab.job("rank_1_hangs", ranks=3)
    framework.submit(hanging)
    with pytest.raises(TimedOut):
        framework.wait(hanging.id, time.monotonic() + 3)
    end = framework.wait(hanging.id, time.monotonic() + 60).end
    assert re.search(r"^rank 1 was stopped after .* s, in stage rank_1_hangs at .*torch_impl\.py:\d+$", end)


def test_a_rank_that_raises_ends_the_task_and_not_the_job(framework, lab):
    result = run(framework, lab.job("rank_1_raises", "summed", ranks=3))
    errors = {outcome.rank: outcome.error for outcome in result.outcomes if outcome.task == 0}
    assert errors[1] == "ValueError: only here"
    assert errors[0] == errors[2] == "stopped, because rank 1 raised in the same stage"
    assert [outcome.status for outcome in result.outcomes if outcome.task == 1] == ["ok"] * 3


def test_ranks_decide_alike_which_stages_a_fault_can_not_reach(framework, lab):
    stages = ("one_reads", "nobody_reads", "summed")
    job = lab.job(*stages, ranks=3)
    good = [dataclasses.replace(task, packed=True) for task in job.tasks]
    faulty = [
        dataclasses.replace(task, packed=True, swap={"double": "fault:triple"}, good=known.out)
        for task, known in zip(lab.job(*stages).tasks, good, strict=True)
    ]
    result = run(framework, dataclasses.replace(job, tasks=(*good, *faulty)))
    assert result.end == ""
    assert {o.task: o.items != () for o in result.outcomes if o.task > 2} == {3: True, 4: False, 5: False}
    assert all(o.items == (f"rank{o.rank}/sum",) for o in result.outcomes if o.task == 3)
    assert all(o.same == (f"rank{o.rank}/now",) for o in result.outcomes if o.task == 4)
    assert Path(faulty[1].checkpoints, "state").read_text() == "left by rank 0"


def test_ranks_that_all_raise_are_each_told(framework, lab):
    result = run(framework, lab.job("summed", "all_raise", "summed", ranks=2))
    assert [outcome.status for outcome in result.outcomes] == ["ok"] * 2 + ["raised"] * 2 + ["ok"] * 2
    assert {outcome.error for outcome in result.outcomes[2:4]} == {"ValueError: everywhere"}


def test_two_ranks_can_not_yield_the_same_item(framework, lab):
    outcomes = run(framework, lab.job("same_name", ranks=2)).outcomes
    raised = [outcome.error for outcome in outcomes if outcome.status == "raised"]
    assert "item shared was yielded already, by another rank or stage" in raised


def test_an_interpreter_for_each_child_gives_the_same_results(framework, lab, tmp_path):
    forked, spawned = lab.job("forward", "draw"), lab.job("forward", "draw")
    run(framework, forked)
    with Framework(None, tmp_path, fork=False) as other:
        result = run(other, spawned)
        crash = run(other, lab.job("segfault"))
    assert result.end == ""
    assert crash.end == "was killed by SIGSEGV, in stage segfault"
    for index, name in ((0, "y"), (0, "grad/x"), (1, "draw")):
        assert tiny.read(forked.tasks[index], name).tobytes() == tiny.read(spawned.tasks[index], name).tobytes()
