import subprocess
import sys

import pytest
import torch

from labs.packing import torch_faults as faults
from labs.packing import torch_parts as parts
from labs.packing.torch_wrong import mask_leak, positions_continue, shift_again

IMPORT = """
import torch
from pathlib import Path
from tempfile import mkdtemp
from labs.packing.torch_impl import PARTS
x = torch.ones(2, dtype=torch.float64)
PARTS.sgd(x.clone(), x, 0.1)
PARTS.adamw(x.clone(), x, 0.1, 1e-6, 0.1)
PARTS.save({"sgd": {"w": x}}, path := Path(mkdtemp(), "x.pt"))
PARTS.load(path)
import sys
slow = ("torch._dynamo", "sympy", "labs.kernels", "labs.packing.reference", "yaml")
print([name for name in slow if name in sys.modules])
"""

TWO = torch.tensor([[0, 0, 1, 1]])  # segments: two documents of two tokens
PADDED = torch.tensor([[0, 0, 0], [1, -1, -1]])


def row(*values):
    return torch.tensor([values])


def test_the_torch_side_imports_nothing_slow_and_nothing_of_the_reference():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def attended(mask, attention=parts.attention):
    """What queries with equal scores read of the values 10, 20 | 1, 3."""
    flat = torch.zeros(1, 1, 4, 1, dtype=torch.float64)
    values = torch.tensor([10.0, 20.0, 1.0, 3.0], dtype=torch.float64).view(1, 1, 4, 1)
    return attention(flat, flat, values, mask).flatten().tolist()


def test_the_mask_keeps_documents_apart():
    assert attended(parts.mask(TWO)) == pytest.approx([10, 15, 1, 2])


@pytest.mark.parametrize(
    ("mask", "attention"),
    [(mask_leak, parts.attention), (parts.mask, faults.attention_without_padding)],
    ids=["mask_leak", "mask_all_ones"],
)
def test_without_it_they_leak_into_each_other(mask, attention):
    assert attended(mask(TWO), attention) == pytest.approx([10, 15, 31 / 3, 8.5])


def test_a_query_that_sees_nothing_gets_zero_and_no_gradient():
    q = torch.ones(1, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    out = parts.attention(q, q, q, torch.tensor([[[True, False], [False, False]]]))
    out.sum().backward()
    assert out[0, 0, 1].tolist() == [0.0, 0.0]
    assert q.grad[0, 0, 1].tolist() == [0.0, 0.0]


def test_positions_start_in_every_document_and_where_they_do_not():
    assert parts.positions(TWO).tolist() == [[0, 1, 0, 1]]
    assert positions_continue(TWO).tolist() == [[0, 1, 2, 3]]
    assert parts.positions(PADDED).tolist() == [[0, 1, 2], [0, 0, 0]]


def test_a_target_stays_in_its_document():
    labels = row(10, 11, 20, 21)
    assert parts.shift(labels, TWO).tolist() == [[11, -100, 21, -100]]
    assert faults.shift_across(labels, TWO).tolist() == [[11, 20, 21, -100]]


def test_end_of_sequence_is_learned_although_padding_has_its_id():
    ids, learned, segments = parts.pad([torch.tensor([5, 6, 9]), torch.arange(4)], [torch.ones(3), torch.ones(4)], 9)
    learned, first = learned.bool(), segments[:1]
    right = parts.shift(parts.labels(ids, learned, 9)[:1], first)
    assert right.tolist() == [[6, 9, -100, -100]]
    wrong = parts.shift(faults.labels_not_padding(ids, learned, 9)[:1], first)
    assert wrong.tolist() == [[6, -100, -100, -100]]


@pytest.mark.parametrize(
    ("supervise", "turns", "learned"),
    [
        (parts.supervise, "all", [2, 3, 6, 7]),
        (parts.supervise, "final", [6, 7]),
        (faults.supervise_until_user, "all", [2, 3, 4, 6, 7]),
    ],
)
def test_turns(supervise, turns, learned):
    assert supervise("uuaatuaa", turns).nonzero().flatten().tolist() == learned


@pytest.mark.parametrize(("roles", "learned"), [("aatau", [3]), ("uaaa", [1, 2, 3]), ("tata", [3])])
def test_the_final_turn_is_the_last_run_of_the_assistant(roles, learned):
    assert parts.supervise(roles, "final").nonzero().flatten().tolist() == learned


def test_a_shards_last_token_predicts_the_next_shards_first():
    labels, one = row(*range(1, 9)), torch.zeros(1, 8, dtype=torch.long)
    assert parts.shard(labels, one, 2).tolist() == [[2, 3, 4, 5], [6, 7, 8, -100]]
    assert faults.shard_before_shift(labels, one, 2).tolist() == [[2, 3, 4, -100], [6, 7, 8, -100]]


def test_an_oracle_has_a_small_loss_until_the_label_is_shifted_again():
    ids = row(0, 1, 2, 3)
    targets = parts.shift(ids, torch.zeros_like(ids))
    logits = 10.0 * torch.nn.functional.one_hot(targets.clamp(min=0), 4).double()
    assert parts.losses(logits, targets).sum() / 3 == pytest.approx(1.36e-4, rel=1e-2)
    assert faults.losses_shifted_again(logits, targets).sum() / 2 == pytest.approx(10.0001, rel=1e-5)
    assert shift_again(targets).tolist() == [[2, 3, -100, -100]]


def test_the_count_is_that_of_the_targets():
    labels = row(5, 6, 7, 8, 9)
    targets = parts.shift(labels, torch.zeros_like(labels))
    assert (parts.count(labels, targets), faults.count_labels(labels, targets)) == (4, 5)


SUMS, COUNTS = torch.tensor([6.0, 10.0]), torch.tensor([3, 1])  # token losses 1, 2, 3 and 10


@pytest.mark.parametrize(
    ("accumulation", "value"),
    [(parts.accumulation, 4), (faults.accumulate_means, 6), (faults.accumulate_undivided, 12)],
)
def test_micro_batches_of_unequal_counts(accumulation, value):
    assert sum(accumulation(s, c, COUNTS, 2) for s, c in zip(SUMS, COUNTS, strict=True)) == value


@pytest.mark.parametrize(("accumulation", "share"), [(parts.accumulation, 1), (faults.accumulate_full_window, 0.5)])
def test_a_last_window_of_two_of_four(accumulation, share):
    window = torch.tensor([1, 1])
    assert sum(accumulation(torch.tensor(x), torch.tensor(1), window, 4) for x in (2.0, 4.0)) == 3 * share


@pytest.mark.parametrize(("rank_loss", "value"), [(parts.rank_loss, 2), (faults.rank_mean, 4)])
def test_five_ones_on_one_rank_and_a_seven_on_the_other(rank_loss, value):
    sums, counts = (torch.tensor(5.0), torch.tensor(7.0)), torch.tensor([5, 1])
    losses = [rank_loss(s, c, counts.sum(), 2) for s, c in zip(sums, counts, strict=True)]
    assert sum(losses) / 2 == value


def test_the_mean_of_means_leaves_out_a_group_without_targets():
    sums, counts = torch.tensor([6.0, 0.0, 10.0]), torch.tensor([3, 0, 1])
    assert parts.mean_of_means(sums, counts) == 6
    assert faults.mean_over_empty(sums, counts) == 4


def test_without_labels_the_loss_is_zero_and_connected():
    total = torch.zeros((), requires_grad=True)
    nothing = torch.tensor(0)
    loss = parts.mean(total * 1, nothing)
    assert loss == 0
    assert loss.requires_grad
    assert faults.mean_unguarded(total, nothing).isnan()
    assert not faults.mean_constant(total, nothing).requires_grad


def test_updates_are_plain_sgd_and_decoupled_adamw_in_place():
    p = torch.tensor([1.0], dtype=torch.float64)
    gradient = torch.tensor([0.1], dtype=torch.float64)
    right, wrong = p.clone(), p.clone()
    parts.sgd(p, gradient, 0.5)
    parts.adamw(right, gradient, 0.1, 1e-12, 0.1)
    faults.adamw_decay_in_gradient(wrong, gradient, 0.1, 1e-12, 0.1)
    assert p.item() == 0.95
    assert right.item() == pytest.approx(0.89)
    assert wrong.item() == pytest.approx(0.90)


def test_a_document_without_tokens_is_a_row_of_padding():
    ids, learned, segments = parts.pad(
        [torch.tensor([1, 2]), torch.tensor([], dtype=torch.long)], [torch.ones(2).bool(), torch.ones(0).bool()], 7
    )
    assert ids.tolist() == [[1, 2], [7, 7]]
    assert learned.tolist() == [[True, True], [False, False]]
    assert segments.tolist() == [[0, 0], [-1, -1]]
    assert not parts.mask(segments)[1].any()


def test_neighbouring_pairs_are_another_rotation():
    x = torch.arange(8.0, dtype=torch.float64).view(1, 1, 2, 4)
    turned = faults.rope_neighbours(x, torch.tensor([[0, 1]]), 100.0)
    c, s = torch.tensor(1.0, dtype=torch.float64).cos(), torch.tensor(1.0, dtype=torch.float64).sin()
    assert turned[0, 0, 0].tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(turned[0, 0, 1, :2], torch.stack([4 * c - 5 * s, 5 * c + 4 * s]))
