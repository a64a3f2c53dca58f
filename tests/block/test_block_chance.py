"""Parts that a resumed run cannot tell from right ones: each has to be red at the default config, by name."""

import pytest
import torch

from labs.block import torch_faults
from labs.block import torch_parts as right

CONFIG = {"steps": 2, "checkpoint_after": 1}


def doubled(x, share):
    return x * 2


def whole_rows(x, share):
    return x * right.dropout(torch.ones_like(x[..., :1]), share)


def always_half(x, share):
    return right.dropout(x, 0.5) * (0.5 / (1 - share))


def constant(x, share):
    return right.dropout(torch.ones_like(x), share) + 0.0 * x


def rolled(n):
    return torch.arange(n).roll(int(torch.randint(n, ())))


def same_order(n):
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))


WRONG = [
    ("dropout", lambda x, share: x * 0, {"excess", "again"}),
    ("dropout", lambda x, share: x, {"kept", "excess", "again"}),
    ("dropout", doubled, {"kept", "excess", "again"}),
    ("dropout", whole_rows, {"excess"}),
    ("dropout", always_half, {"excess"}),
    ("dropout", constant, {"grad"}),
    ("dropout", lambda x, share: right.dropout(x.detach(), share), {"grad"}),
    ("shuffle", torch.arange, {"successors", "again"}),
    ("shuffle", lambda n: torch.zeros(n, dtype=torch.int64), {"sorted", "again"}),
    ("shuffle", rolled, {"successors"}),
    ("shuffle", same_order, {"again"}),
]
RIGHT = [
    ("dropout", lambda x, share: torch.where(torch.rand_like(x) < share, 0.0, x / (1 - share))),
    ("dropout", lambda x, share: x * torch.empty_like(x).bernoulli_(1 - share) / (1 - share)),
    ("shuffle", lambda n: torch.rand(n).argsort()),
]


def swapped(checks, failing, monkeypatch, part, function, changes):
    monkeypatch.setattr(torch_faults, "tried", function, raising=False)
    return {name for name, _ in failing(checks({**CONFIG, **changes}, swap={part: "tried"}))}


@pytest.mark.parametrize(("part", "function", "items"), WRONG)
def test_a_part_that_breaks_its_promise_is_red(checks, failing, monkeypatch, part, function, items):
    found = swapped(checks, failing, monkeypatch, part, function, {})
    assert found >= {f"stochastic/{part}/{item}" for item in items}


@pytest.mark.parametrize("share", [0.0, 0.001, 0.25, 0.9, 0.9999])
@pytest.mark.parametrize(("part", "function"), RIGHT)
def test_another_right_part_is_green(checks, failing, monkeypatch, part, function, share):
    assert swapped(checks, failing, monkeypatch, part, function, {"dropout": share}) == set()


@pytest.mark.parametrize(
    "swap", [{"scores": "scores_tiled"}, {"mix": "mix_tiled"}, {"attention": "attention_tiled"}], ids=str
)
def test_tiled_heads_are_red_with_one_shared_head(checks, failing, swap):
    assert {name.rpartition("grouped/")[1] for name, _ in failing(checks({"steps": 0}, swap=swap))} == {"grouped/"}
