"""Parts that somebody could swap in: right ones computed otherwise, and wrong ones that hide behind a loose check."""

import math

import pytest
import torch

from labs.lora import torch_parts


def product_by_terms(x, w):
    """X W summed over k one after another, which has other last bits than torch's own."""
    total = x[..., :1] * w[0]
    for k in range(1, w.shape[0]):
        total = total + x[..., k : k + 1] * w[k]
    return total


def product_from_the_end(x, w):
    return product_by_terms(x.flip(-1), w.flip(0))


def product_by_halves(x, w):
    middle = w.shape[0] // 2
    return x[..., :middle] @ w[:middle] + x[..., middle:] @ w[middle:]


@pytest.mark.parametrize("product", [product_by_terms, product_from_the_end, product_by_halves])
@pytest.mark.parametrize("changes", [{}, {"batch": 1, "positions": 1}, {"d_in": 64, "group": 32}], ids=str)
def test_another_order_of_summation_is_right(checks, failing, product, changes):
    def linear(x, w, lora_a, lora_b, s):
        return product(x, w) + s * product(product(x, lora_a), lora_b)

    assert failing(checks(changes, swap={"linear": linear})) == set()


def test_a_wrong_product_with_the_base_fails_the_base_output(checks, failing):
    def linear(x, w, lora_a, lora_b, s):
        return torch_parts.linear(x, w * 1.0001, lora_a, lora_b, s)

    assert ("init/base_output", "close") in failing(checks(swap={"linear": linear}))


def test_a_branch_that_is_there_at_zero_fails_the_identity(checks, failing):
    def linear(x, w, lora_a, lora_b, s):
        return x @ w + s * (x @ lora_a) @ (lora_b + 1e-13)

    failed = failing(checks(swap={"linear": linear}))
    assert ("init/output", "identical") in failed
    assert ("init/output", "close") not in failed


def half_away(q):
    return q.sign() * (q.abs() + 0.5).floor()


def half_to_zero(q):
    return q.sign() * (q.abs() - 0.5).ceil()


def half_to_odd(q):
    return torch.where((q - q.floor()) == 0.5, 2 * (q.floor() / 2).floor() + 1, q.round())


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rounding", [half_away, half_to_zero, half_to_odd])
def test_another_rounding_of_ties_fails(checks, failing, rounding, bits):
    def quantize(w, bits, group):
        _, scales = torch_parts.quantize(w, bits, group)
        quotients = w / scales.masked_fill(scales == 0, 1.0).repeat_interleave(group, 0)
        return rounding(quotients).to(torch.int8), scales

    assert ("requantize/ties", "exact") in failing(checks({"bits": bits}, swap={"quantize": quantize}))


def tiny(d, r):
    return torch_parts.framework_kaiming(d, r) * 1e-3


def constant(d, r):
    return torch.full((d, r), 1 / math.sqrt(d), dtype=torch.float64)


def positive(d, r):
    return torch_parts.framework_kaiming(d, r).abs()


def alternating(d, r):
    return constant(d, r) * torch.tensor([1.0, -1.0]).repeat(r)[:r]


def one_row(d, r):
    return torch_parts.framework_kaiming(d, r)[:1].expand(d, r)


@pytest.mark.parametrize("draw", [tiny, constant, positive, alternating, one_row])
def test_a_draw_that_does_not_fill_its_bound_fails(checks, failing, draw):
    assert failing(checks(swap={"framework_kaiming": draw})) == {("init/draw/bound_reached", "exact")}
