"""A guard around a swapped-in part: every way not to keep to a signature has its own sentence."""

import re

import pytest
import torch

from labs.core.process.mark import Mark, mark_file, marked
from labs.core.process.swap import Swap
from labs.core.process.torch_guard import Guard, PartError, guarded


def own(x, w, gamma, s):
    return (x @ w) * gamma * s


def own_step(parameter, gradient, lr):
    with torch.no_grad():
        parameter -= lr * gradient


def operands(grad=True):
    torch.manual_seed(1)
    x, w, gamma = (torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3), (3, 4), (4,)))
    return [t.requires_grad_() if grad else t for t in (x, w, gamma)]


def guard(function, tmp_path, own=own):
    return Guard(Swap("linear", function, "mine.py", "mine.py:3"), own, Mark(str(tmp_path / "mark")), remembers=True)


def overwrite(x, w, gamma, s):
    with torch.no_grad():
        w.mul_(2.0)
    return own(x, w, gamma, s)


def behind_the_counter(x, w, gamma, s):
    w.data.numpy()[0, 0] += 1.0
    return own(x, w, gamma, s)


class Half(torch.autograd.Function):
    @staticmethod
    def forward(_ctx, x, w, gamma, s):
        return own(x, w, gamma, s)

    @staticmethod
    def backward(_ctx, _dy):
        return None, None, None, None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda x, w: x @ w, "takes (x, w), and is called with (x, w, gamma, s): too many positional arguments"),
        (torch.exp, "is called with (x, w, gamma, s): "),
        (lambda x, w, gamma, s: own(x, w, gamma, s)[:, :3], "a tensor of shape [2, 3], expected [2, 4]"),
        (lambda x, w, gamma, s: own(x, w, gamma, s)[None], "a tensor of shape [1, 2, 4], expected [2, 4]"),
        (lambda x, w, gamma, s: own(x, w, gamma, s).float(), "returned float32, expected float64"),
        (lambda x, w, gamma, s: own(x, w, gamma, s).to("meta"), "a tensor on meta, expected it on cpu"),
        (lambda x, w, gamma, s: own(x, w, gamma, s).to_sparse(), "a tensor of layout torch.sparse_coo"),
        (lambda x, w, gamma, s: None, "returned None, expected a tensor of shape [2, 4], float64"),
        (lambda x, w, gamma, s: 1.0, "returned a float, expected a tensor"),
        (lambda x, w, gamma, s: (own(x, w, gamma, s),), "returned a tuple, expected a tensor"),
        (overwrite, "writes into its input w"),
        (behind_the_counter, "writes into its input w"),
        (lambda x, w, gamma, s: own(x, w, gamma, s).detach(), "cut off from the graph"),
        (lambda x, w, gamma, s: own(x, w, gamma.detach(), s), "without a way back to gamma: no gradient gets there"),
        (lambda x, w, gamma, s: own(x.detach(), w.detach(), gamma, s), "without a way back to x, w:"),
    ],
)
def test_what_does_not_keep_to_the_signature_is_named(wrong, sentence, tmp_path):
    with pytest.raises(PartError, match=re.escape(sentence)) as error:
        guard(wrong, tmp_path)(*operands(), 2.0)
    assert str(error.value).startswith("part linear (mine.py:3) ")


@pytest.mark.parametrize(
    "right",
    [
        own,
        lambda x, w, gamma, s: x @ (w * (gamma * s)),
        lambda x, w, gamma, s: own(x, w, gamma, s).mul_(1.0),
        lambda x, w, gamma, s: own(x, w, gamma, s).T.contiguous().T,
        Half.apply,  # its gradients are wrong, which the values tell
    ],
)
def test_what_keeps_to_it_passes_through_with_its_own_gradient(right, tmp_path):
    ours, theirs = operands(), operands()
    guard(right, tmp_path)(*theirs, 2.0).sum().backward()
    right(*ours, 2.0).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad is None and b.grad is None) or torch.equal(a.grad, b.grad)


def test_an_input_that_is_reached_around_what_was_made_of_it_is_reached(tmp_path):
    x = operands()[0]
    doubled = guard(lambda x, made: 2 * x, tmp_path, own=lambda x, made: made)
    doubled(x, 2 * x).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_without_gradients_nobody_asks_for_a_way_back(tmp_path):
    assert guard(lambda *args: own(*args).detach(), tmp_path)(*operands(grad=False), 2.0).shape == (2, 4)
    with torch.no_grad():
        guard(lambda *args: own(*args).detach(), tmp_path)(*operands(), 2.0)


def test_a_part_that_has_to_write_into_its_input_may(tmp_path):
    parameter, gradient = torch.ones(3), torch.full((3,), 0.5)
    guard(own_step, tmp_path, own=own_step)(parameter, gradient, 1.0)
    assert parameter.tolist() == [0.5] * 3

    still = guard(own_step, tmp_path, own=own_step)
    for value in (0.0, 0.5):  # the first step writes what was there
        still(parameter, torch.full((3,), value), 1.0)

    def greedy(parameter, gradient, lr):
        own_step(parameter, gradient, lr)
        gradient.zero_()

    with pytest.raises(PartError, match="writes into its input gradient"):
        guard(greedy, tmp_path, own=own_step)(parameter, gradient, 1.0)


def test_an_input_is_called_by_its_argument_and_place(tmp_path):
    def total(scale, pair, last):
        return scale * pair[0] + pair[1] + last

    def greedy(scale, pair, last):
        pair[1].add_(1)
        return total(scale, pair, last)

    with pytest.raises(PartError, match=r"writes into its input pair\[1\]"):
        guard(greedy, tmp_path, own=total)(2.0, [torch.ones(2), torch.ones(2)], torch.ones(2))
    detached = guard(lambda s, p, last: total(s, p, last.detach()), tmp_path, own=total)
    with pytest.raises(PartError, match="without a way back to last"):
        detached(2.0, [torch.ones(2, requires_grad=True), torch.ones(2)], torch.ones(2, requires_grad=True))


def test_a_random_part_draws_what_it_would_draw_without_a_guard(tmp_path):
    torch.manual_seed(3)
    plain = torch.randperm(8)
    torch.manual_seed(3)
    assert torch.equal(guard(torch.randperm, tmp_path, own=torch.randperm)(8), plain)


def test_what_a_stage_sees_saved_is_the_parts_own(tmp_path):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        guard(lambda x, w: x @ w, tmp_path, own=lambda x, w: (x @ w) * 2 / 2)(*operands()[:2])
    assert sorted(kept) == [6, 12]


def test_the_form_is_taken_anew_where_integers_differ(tmp_path):
    counted = guard(torch.bincount, tmp_path, own=torch.bincount)
    assert [len(counted(torch.tensor(ids))) for ids in ([0, 1], [0, 5])] == [2, 6]


def test_a_part_that_gets_more_than_tensors_and_numbers_is_not_run_twice(tmp_path):
    calls = []
    guard(lambda path: None, tmp_path, own=calls.append)(tmp_path)
    assert calls == []


def test_an_error_says_which_part_it_passed_through(tmp_path):
    with pytest.raises(ValueError, match="no") as error:
        guard(lambda *args: (_ for _ in ()).throw(ValueError("no")), tmp_path)(*operands(), 2.0)
    assert error.value.part == "linear"


def test_a_mark_stands_while_the_part_is_called_and_no_longer(tmp_path):
    file = mark_file(str(tmp_path / "main"), "a/b", 1)
    seen = []
    swap = Swap("linear", lambda *_: seen.append(marked(str(tmp_path / "main"), "a/b", 2)) or own(*_), "mine.py")
    Guard(swap, own, Mark(file), remembers=True)(*operands(), 2.0)
    assert seen == ["linear"]
    assert marked(str(tmp_path / "main"), "a/b", 2) == ""


def test_a_known_fault_of_the_lab_has_no_guard(tmp_path):
    fault = Swap("linear", own, "torch_faults.py", fault=True)
    assert guarded(fault, own, Mark(str(tmp_path / "mark")), ranks=1) is own
