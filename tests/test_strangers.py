"""Implementations that nobody here wrote a control for: the wrong ones are caught, the right ones pass."""

import pytest

from labs.core.launch import Framework
from labs.core.reports.summary import finding
from labs.core.run import Request, run

THEIRS = '''
import math
import torch
import torch.nn.functional as F

class _Branch(torch.autograd.Function):
    """Hand-written, saves the scaled product; the way back to lora_a takes s for granted."""
    @staticmethod
    def forward(ctx, x, w, a, b, s):
        h = x @ a
        ctx.save_for_backward(x, w, a, b, h)
        ctx.s = s
        return x @ w + s * (h @ b)

    @staticmethod
    def backward(ctx, g):
        x, w, a, b, h = ctx.saved_tensors
        up = g @ b.T
        rows = lambda t: t.reshape(-1, t.shape[-1])
        dx = g @ w.T + ctx.s * (up @ a.T)
        return dx, rows(x).T @ rows(g), rows(x).T @ rows(up), ctx.s * rows(h).T @ rows(g), None

def linear_backward(x, w, a, b, s):
    return _Branch.apply(x, w, a, b, s)

def dequantize_tiled(codes, scales, group):
    """Each scale meant for `group` neighbouring rows, and given to every group-th one."""
    return codes * scales.repeat(group, 1)

def loss_by_rows(y, head, labels, weights):
    """The weights count, and the mean is over rows all the same."""
    losses = F.cross_entropy((y @ head).flatten(0, -2), labels.flatten(), reduction="none")
    return (losses * weights.flatten()).mean()

def adam_coupled(params, grads, exp_avgs, exp_avg_sqs, steps, *, lr, beta1, beta2, epsilon, weight_decay):
    with torch.no_grad():
        for p, g, m, v, t in zip(params, grads, exp_avgs, exp_avg_sqs, steps):
            t += 1
            g = g + weight_decay * p
            m.mul_(beta1).add_((1 - beta1) * g)
            v.mul_(beta2).add_((1 - beta2) * g * g)
            hat_m, hat_v = m / (1 - beta1 ** t.item()), v / (1 - beta2 ** t.item())
            p -= lr * hat_m / (hat_v.sqrt() + epsilon)

def merge_twice_scaled(w, a, b, s):
    """The factors were scaled when they were stored, each by the root of s; here s comes on top once more."""
    return w + (math.sqrt(s) * a @ (math.sqrt(s) * b) * s).to(w.dtype)

def quantize_floor(w, bits, group):
    blocks = w.unflatten(0, (-1, group))
    scales = blocks.abs().amax(1) / (2 ** (bits - 1) - 1)
    codes = torch.trunc(blocks / torch.where(scales > 0, scales, 1.0)[:, None])
    return codes.flatten(0, 1).to(torch.int8), scales

def linear_bracketed(x, w, a, b, s):
    """One product of concatenated matrices, [X, sXA] [W; B], added up in place, handed back column by column."""
    joined = torch.cat([x, s * torch.einsum("...d,dr->...r", x, a)], -1)
    out = joined.new_zeros(*x.shape[:-1], w.shape[1])
    out += joined @ torch.cat([w, b])
    return out.transpose(-1, -2).contiguous().transpose(-1, -2)

class _Fused(torch.autograd.Function):
    """RMSNorm with its own backward."""
    @staticmethod
    def forward(ctx, x, gamma, epsilon):
        r = (x.pow(2).sum(-1, keepdim=True) / x.shape[-1]).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, gamma, r)
        return (x * r).mul_(gamma)

    @staticmethod
    def backward(ctx, g):
        x, gamma, r = ctx.saved_tensors
        scaled = g * gamma
        along = (scaled * x).sum(-1, keepdim=True) * r.pow(3) / x.shape[-1]
        return scaled * r - x * along, (g * x * r).flatten(0, -2).sum(0), None

def norm_fused(x, gamma, epsilon):
    return _Fused.apply(x, gamma, epsilon)

def adam_in_place(params, grads, exp_avgs, exp_avg_sqs, steps, *, lr, beta1, beta2, epsilon, weight_decay):
    """The decay last, the corrections drawn together, everything in place."""
    with torch.no_grad():
        for p, g, m, v, t in zip(params, grads, exp_avgs, exp_avg_sqs, steps):
            t.add_(1)
            before = p.clone()
            m.lerp_(g, 1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            root = math.sqrt(1 - beta2 ** t.item())
            p.addcdiv_(m, v.sqrt().add_(epsilon * root), value=-lr * root / (1 - beta1 ** t.item()))
            p.sub_(before, alpha=lr * weight_decay)
'''


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


@pytest.fixture
def judged(framework, tmp_path):
    """One lab with one part swapped, under a config name of its own: a process knows each job name once."""

    def judge(lab, part, name):
        (tmp_path / "theirs.py").write_text(THEIRS)
        (tmp_path / f"{lab}_{name}.yaml").write_text(f"lab: {lab}\n")
        swap = {part: f"{tmp_path}/theirs.py:{name}"}
        asked = {"names": (str(tmp_path / f"{lab}_{name}.yaml"),), "out": tmp_path / "out", "controls": False}
        return run(Request(**asked, swap=swap), framework).report["labs"][0]

    return judge


@pytest.mark.parametrize(
    ("lab", "part", "name", "failed", "diagnosis", "verdict"),
    [
        (
            "lora",
            "linear",
            "linear_backward",
            "trained/grad/lora_a",
            "equals backward_without_scale",
            "equals backward_without_scale",
        ),
        ("lora", "quantize", "quantize_floor", "requantize/codes", "", "first at requantize/codes"),
        ("lora", "dequantize", "dequantize_tiled", "requantize/loss", "", "first at requantize/error/quantize"),
        ("lora", "cross_entropy", "loss_by_rows", "trained/grad/lora_a", "times the reference", "first at init/loss"),
        ("block", "optimizer", "adam_coupled", "train/param/w_q", "equals adam_l2", "equals adam_l2"),
        ("lora", "merge", "merge_twice_scaled", "merge/weight", "", "first at merge/weight"),
    ],
)
def test_a_wrong_part_is_caught_where_it_is_wrong(judged, lab, part, name, failed, diagnosis, verdict):
    found = judged(lab, part, name)
    checks = {c["name"]: c for c in found["checks"] if c["status"] == "failed"}
    assert found["status"] == "failed"
    assert found["failures"] == []
    assert checks[failed]["blame"]["side"] == "observed"
    assert diagnosis in (checks[failed]["diagnosis"] or "")
    assert verdict in finding(found)


@pytest.mark.parametrize(
    ("lab", "part", "name"),
    [
        ("lora", "linear", "linear_bracketed"),
        ("block", "norm", "norm_fused"),
        ("block", "optimizer", "adam_in_place"),
    ],
)
def test_a_right_part_passes_however_it_is_written(judged, lab, part, name):
    found = judged(lab, part, name)
    assert (found["status"], found["failures"]) == ("passed", [])
    assert min(c["headroom"] for c in found["checks"] if c["kind"] == "close") > 5
