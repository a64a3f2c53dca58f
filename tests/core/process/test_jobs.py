"""What travels between the two processes comes back as it was."""

import dataclasses
import json

import pytest

from labs.core.process.jobs import Job, JobResult, Outcome, Task, job_from, plain, result_from

CONFIG = {"scale": 2.0, "inner": {"steps": [1, 2]}}
TASK = Task("forward", CONFIG, {"double": "fault:triple"}, "inputs", "out", "scratch", "checkpoints", packed=True)
OTHERS = {
    "stage": "backward", "config": {"scale": 3.0}, "swap": {"double": "fault:half"}, "inputs": "elsewhere", "out": "o",
    "scratch": "s", "checkpoints": "c", "packed": False, "good": "g", "resumes": True, "precision": "float32",
    "device": "meta",
}  # fmt: skip


def there_and_back(record):
    return json.loads(json.dumps(plain(record)))


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Task)])
def test_tasks_that_differ_in_one_value_stay_apart(name):
    job = Job("job", "package", "path", (TASK, dataclasses.replace(TASK, **{name: OTHERS[name]}), TASK), after=("a",))
    assert job_from(there_and_back(job)) == job


def test_what_tasks_share_travels_once():
    stages = tuple(dataclasses.replace(TASK, stage=f"stage{number}") for number in range(100))
    one, hundred = (len(json.dumps(plain(Job("job", "package", "path", tasks)))) for tasks in (stages[:1], stages))
    assert hundred < 10 * one


def test_a_result_comes_back_with_its_outcomes():
    outcome = Outcome(0, 1, "raised", ("a",), ("b",), "ValueError: no", "…", "double", 0.5, ({"part": "double"},))
    result = JobResult("job", (outcome, Outcome(1, 0, "ok")), "", 1 << 20, 0.25, "last words")
    assert result_from(there_and_back(result)) == result
