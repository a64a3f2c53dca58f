import dataclasses
from pathlib import Path

from labs.core.process.jobs import JobResult, Outcome
from labs.core.registry import load
from labs.core.schedule import Case, Ran, items_of, needed, orders

OVER = JobResult("job", (), "", 0, 0.0, "")


def case(lab, name="main", tmp=Path("x")):
    return Case(name, lab.config(), tmp / "in", tmp / name, tmp / "s", tmp / "c", good=tmp / "good")


def ran(lab, *outcomes, end="", tail="", stage=0):
    return Ran(case(lab), lab.stages[stage], outcomes, JobResult("job", outcomes, end, 0, 0.0, tail))


def test_a_stage_needs_the_ones_that_it_comes_after():
    assert [s.name for s in needed(load("lora"), ["checkpoint/*"])] == ["sgd", "checkpoint"]


def test_everything_needs_every_stage():
    lab = load("lora")
    assert needed(lab, ["*"]) == lab.stages


def test_the_run_has_a_job_for_each_stage_and_resuming_waits_for_what_it_resumes():
    lab = load("lora")
    made = orders(lab, lab.stages, [case(lab)], name="run", share="nothing", threads=1, log=Path("log"))
    assert sorted(order.tasks[0][1].name for order in made) == sorted(s.name for s in lab.stages)
    assert all(len(order.tasks) == 1 for order in made)
    (late,) = [order for order in made if order.tasks[0][1].name == "checkpoint"]
    assert "run/0/sgd" in late.job.after


def test_controls_share_one_job_in_which_resuming_comes_later():
    lab = load("lora")
    (only,) = orders(lab, lab.stages, [case(lab)], name="c", share="everything", threads=1, log=Path("log"))
    names = [s.name for _, s in only.tasks]
    assert names.index("sgd") < names.index("checkpoint")


def test_ranks_of_another_number_are_another_job():
    lab = load("contrastive")
    made = orders(lab, lab.stages, [case(lab)], name="c", share="everything", threads=1, log=Path("log"))
    assert all(order.job.ranks == s.ranks(c.config) for order in made for c, s in order.tasks)
    assert [order.job.ranks for order in made] == [1, 2, 1]  # the checkpoint of two ranks is resumed by one


def test_cases_share_a_job_and_resume_in_a_later_one():
    lab = load("lora")
    cases = [case(lab, name) for name in ("good", "a", "b")]
    first, second = orders(lab, lab.stages, cases, name="c", share="stages", threads=1, log=Path("log"))
    assert [c.name for c, s in first.tasks if s.name == "sgd"] == ["good", "a", "b"]
    assert {s.name for _, s in second.tasks} == {"checkpoint"}
    assert second.job.after == (first.job.id,)


def test_an_answer_without_an_error_is_no_failure():
    assert ran(load("lora"), Outcome(0, 0, "ok")).failure == ""


def test_a_python_error_is_a_failure_and_no_crash():
    found = ran(load("lora"), Outcome(0, 0, "raised", error="ValueError: no", where="linear"))
    assert found.failure == "stage init raised in part linear: ValueError: no"
    assert not found.crashed


def test_a_process_that_died_is_a_crash_with_its_last_words():
    found = ran(load("lora"), end="was killed by SIGSEGV", tail="so long\n")
    assert found.failure == "stage init: was killed by SIGSEGV; its last words: so long"
    assert found.crashed


def test_items_with_the_good_runs_bits_lie_in_the_good_runs_folder():
    lab = load("lora")
    mine = case(lab)
    done = Ran(mine, lab.stages[0], (Outcome(0, 0, "ok", items=("a",), same=("b",)),), OVER)
    other = Ran(case(lab, "other"), lab.stages[0], (Outcome(0, 0, "ok", items=("z",)),), OVER)
    assert items_of(mine, [done, other]) == {"a": mine.out, "b": mine.good}


def test_a_stage_that_has_nothing_to_do_at_a_config_does_not_run():
    lab = load("block")
    idle = dataclasses.replace(case(lab), config=dataclasses.replace(lab.config(), steps=0))
    made = orders(lab, lab.stages, [idle], name="run", share="stages", threads=1, log=Path("log"))
    assert [s.name for order in made for _, s in order.tasks] == ["pass"]
