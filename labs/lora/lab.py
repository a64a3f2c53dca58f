"""The lora lab: a low-rank branch on a frozen base, from its first step to a quantised base it was merged into."""

from typing import Any

from labs.core.lab import Array, Arrays, Lab, Rule, Stage, Witness, identical, within, zero
from labs.kernels import lora
from labs.lora.config import Config
from labs.lora.controls import CONTROLS
from labs.lora.inputs import inputs
from labs.lora.reference import draw_a, objective, reference, scale

EQUATIONS = """
Y = X W + s (X A) B          X [n,d], W [d,k] frozen, A [d,r] "down", B [r,k] "up", rows are vectors
s = alpha/r (classic), alpha/sqrt(r) (rslora)
G = dL/dY                    L: cross-entropy of Y H behind a fixed head H, or half a squared distance, rows weighted
dA = s X^T (G B^T)           B = 0 at the start, so dA = 0 there and dB is not
dB = s (X A)^T G
dX = G W^T + s (G B^T) A^T   the second term is absent when the branch reads a detached X
dW = X^T G                   only when the base is unfrozen; else absent
merge                        W + s A B
quantise                     code = round(w/scale), scale = max|w|/(2^(bits-1) - 1) over `group` rows of one column

The same branch elsewhere:
  here                        A [d,r]            B [r,k]            Y = X W + s (X A) B
  W + B A, column vectors     A^T [r,n], n = d   B^T [m,r], m = k   y = (W + s B A) x
  PEFT, nn.Linear layout      lora_A [r,d]=A^T   lora_B [k,r]=B^T   W.weight [k,d], fan-in of lora_A is d
"""

ITEMS = {
    "init/draw/kaiming": "A uniform within 1/sqrt(d)",
    "init/draw/gaussian": "A = init_std times normal draws",
    "init/draw/framework": "the framework's own Kaiming-uniform draw; within 1/sqrt(d)",
    "init/draw/bound_reached": "that of [64,16] has both signs, over 0.9 of 1/sqrt(64), no row or column twice",
    "init/lora_b": "B = 0",
    "init/base_output": "Y at A = B = 0: X W",
    "init/output": "Y at B = 0; the bits of init/base_output",
    "init/grad/lora_a": "dA = 0 at B = 0",
    "init/grad/lora_b": "dB = s (X A)^T G, not 0",
    "init/grad/x": "dX = G W^T at B = 0",
    "trained/output": "Y = X W + s (X A) B",
    "trained/grad/lora_a": "dA = s X^T (G B^T)",
    "trained/grad/lora_b": "dB = s (X A)^T G",
    "trained/grad/x": "dX = G W^T + s (G B^T) A^T",
    "*/grad/output": "G = dL/dY",
    "*/has_grad/*": "whether the parameter has a gradient at all: the frozen base has none",
    "unfrozen/grad/base": "dW = X^T G",
    "detached/grad/lora_[ab]": "as trained: the factors' gradients don't pass through X",
    "detached/grad/x": "dX = G W^T, the base's alone",
    "[it]*/loss": "L, a scalar",
    "sgd/loss": "L before each step",
    "sgd/grad/lora_[ab]": "dA, dB of each step; dA is 0 in the first",
    "sgd/lora_[ab]": "A, B after each step",
    "sgd/final/lora_[ab]": "A, B when training ends",
    "sgd/base/*": "W before and after training: the same bits",
    "checkpoint/lora_[ab]": "A, B loaded from the checkpoint in a new process: the bits of sgd/final",
    "merge/weight": "W + s A B",
    "merge/residual": "unmerged W minus W; within two roundings of the sum, (2u + u^2)(|W| + |s A B|), and two of sAB",
    "merge/output/merged": "X (W + s A B)",
    "merge/output/unmerged": "X W + s (X A) B",
    "merge/output/difference": "merged minus unmerged output; within 2(d + r + 4) u (|X||W| + |s| |X||A||B|)",
    "merge/bf16/merged": "W and s A B rounded to bfloat16, their sum rounded again",
    "merge/bf16/unmerged": "that minus s A B as bfloat16, rounded",
    "merge/bf16/restored": "where unmerging gave the bfloat16 base again",
    "merge/bf16/residual": "unmerged minus base; within two roundings to bfloat16",
    "requantize/codes": "codes of W",
    "requantize/scales": "scales of W",
    "requantize/ties": "codes of k + 0.5 by scale 1: the even neighbour",
    "requantize/loss": "L before each SGD step on the dequantised base Q",
    "requantize/lora_[ab]": "A, B after these steps",
    "requantize/stored": "bf16(bf16(Q) + bf16(s A B))",
    "requantize/codes_after": "codes of the stored weight, by new scales",
    "requantize/scales_after": "scales of the stored weight",
    "requantize/error/quantize": "Q - W; within scale/2 + 2u max|w|",
    "requantize/error/merge": "stored - (Q + s A B); within two roundings to bfloat16",
    "requantize/error/requantize": "Q' - stored, Q' the dequantised codes_after; within scale/2 + 2u max|w|",
    "requantize/survival": "<Q' - Q, D>/<D, D> with D = s A B: 1 when the adapter survived, 0 when it is gone",
    "requantize/output_error": "X (Q' - (W + D))",
    "order/output/*": "factored (X A) B, product X (A B): the same value",
    "order/operations/*": "additions and multiplications of the matrix products: 2mpq each",
    "order/saved_bytes/*": "storages that autograd keeps for the backward pass",
}

BYTES = {"order/saved_bytes/*": "they are counted for float64"}
# What is stored is a bfloat16 number, and so is the largest of its group: their quotient is a tie of the new codes in 6
# of 10000 elements, whatever the number of bits, and how float32 rounds the scale decides which way it goes.
TURNED = dict.fromkeys(
    ("requantize/codes_after", "requantize/survival", "requantize/output_error"),
    "stored numbers are ties of the new codes, where one rounding of the scale decides",
)
TIES = {
    "requantize/[!t]*": "codes turn at ties, where one rounding to bfloat16 decides",  # requantize/ties has no rounding
    "merge/bf16/*": "that is rounded twice already",
}


def rules(config: Config) -> tuple[Rule, ...]:
    """The checks that are not `close` or `exact`."""
    return (
        within("init/draw/framework", "init/draw/bound"),
        zero("init/lora_b"),
        zero("init/grad/lora_a"),
        identical("init/output", "init/base_output"),
        identical("sgd/base/after", "sgd/base/before"),
        identical("checkpoint/lora_a", "sgd/final/lora_a"),
        identical("checkpoint/lora_b", "sgd/final/lora_b"),
        within("merge/residual", "merge/bound/residual"),
        within("merge/output/difference", "merge/bound/difference"),
        within("merge/bf16/residual", "merge/bound/bf16_residual"),
        within("requantize/error/quantize", "requantize/bound/quantize"),
        within("requantize/error/merge", "requantize/bound/merge"),
        within("requantize/error/requantize", "requantize/bound/requantize"),
    )


def _initial_loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
    # The initial factors are no inputs; what moves lora_a and lora_b moves them.
    a = draw_a(config, held) + (arrays["lora_a"] - held["lora_a"])
    b = arrays["lora_b"] - held["lora_b"]
    return _loss(config, arrays, held, a, b, arrays["x"])


def _trained_loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
    return _loss(config, arrays, held, arrays["lora_a"], arrays["lora_b"], arrays["x"])


def _detached_loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
    return _loss(config, arrays, held, arrays["lora_a"], arrays["lora_b"], held["x"])


def _loss(config: Config, arrays: Arrays, held: Arrays, a: Array, b: Array, branch_x: Array) -> Any:
    y = arrays["x"] @ arrays["base"] + lora.branch(branch_x, a, b, scale(config, held))
    # The output is no input either; what moves the target moves it, and the target stays.
    return objective(config, held, y + (arrays["target"] - held["target"]))[0]


WITNESSES = (
    Witness("init/grad/output", _initial_loss, "target"),
    Witness("init/grad/lora_a", _initial_loss, "lora_a"),
    Witness("init/grad/lora_b", _initial_loss, "lora_b"),
    Witness("init/grad/x", _initial_loss, "x"),
    Witness("trained/grad/output", _trained_loss, "target"),
    Witness("trained/grad/lora_a", _trained_loss, "lora_a"),
    Witness("trained/grad/lora_b", _trained_loss, "lora_b"),
    Witness("trained/grad/x", _trained_loss, "x"),
    Witness("unfrozen/grad/base", _trained_loss, "base"),
    Witness("detached/grad/lora_a", _detached_loss, "lora_a"),
    Witness("detached/grad/lora_b", _detached_loss, "lora_b"),
    Witness("detached/grad/x", _detached_loss, "x"),
)

STAGES = (
    Stage("init", ("init/*",)),
    Stage("trained", ("trained/*",)),
    Stage("unfrozen", ("unfrozen/*",)),
    Stage("detached", ("detached/*",)),
    Stage("sgd", ("sgd/*",)),
    Stage("checkpoint", ("checkpoint/*",), after=("sgd",)),
    Stage("merge", ("merge/*",)),
    Stage("requantize", ("requantize/*",)),
    Stage("order", ("order/*",)),
)


def problems(config: Config) -> tuple[tuple[str, str], ...]:
    """What single bounds can't say."""
    if config.d_in % config.group:
        return (("group", f"{config.group} does not divide d_in {config.d_in}"),)
    return ()


def footprint(config: Config) -> int:
    """Bytes at the peak of both processes together, roughly: so many arrays of each shape live at once."""
    rows = config.batch * config.positions
    matrix = config.d_in * config.d_out
    activations = rows * (config.d_in + config.d_out + config.classes)
    factors = config.rank * (config.d_in + config.d_out) * (config.steps + 4)
    ties = config.group * config.group + (1 << config.bits)
    return 8 * (50 * matrix + 30 * activations + 8 * factors + 12 * ties)


LAB = Lab(
    name="lora",
    title="a low-rank branch on a frozen base: gradients, SGD, merging, requantisation",
    equations=EQUATIONS,
    items=ITEMS,
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=rules,
    witnesses=WITNESSES,
    stages=STAGES,
    controls=CONTROLS,
    footprint=footprint,
    problems=problems,
    unjudged={"float32": BYTES | TURNED, "bfloat16": BYTES | TIES},
    trajectories=("sgd/loss", "sgd/lora_[ab]", "requantize/loss"),
)
