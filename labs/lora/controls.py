"""Known faults that every run of the lab has to catch: what is wrong in each, and which checks have to say so."""

from labs.core.lab import Control

# Runs of items that fail together. `:close` and `:within` name one of the two checks that an item has.
INIT_LOSS = ("init/loss", "init/grad/output", "init/grad/x", "init/grad/lora_b")
TRAJECTORY = ("sgd/loss", "sgd/grad/lora_[ab]", "sgd/lora_[ab]")
TRAINED_GRADIENTS = ("trained/grad/*", "unfrozen/grad/base", "detached/grad/*")
MERGE_ITEMS = ("merge/weight", "merge/output/merged", "merge/bf16/merged", "merge/bf16/unmerged", "merge/bf16/restored")
MERGE_RESIDUALS = ("merge/residual", "merge/bf16/residual")
ADAPTED = ("requantize/loss", "requantize/lora_[ab]")
STORED = (
    "requantize/stored",
    "requantize/error/merge:close",
    "requantize/error/requantize:close",
    "requantize/survival",
    "requantize/output_error",
)
# The right factors' bounds, held against wrong ones: some seeds stay inside.
BOUNDS = ("requantize/error/merge:within", "requantize/error/requantize:within")
# What a slightly different trajectory need not push over a rounding edge.
GRID = ("requantize/codes_after", "requantize/scales_after")
NEAR = (*BOUNDS, *GRID)

CONTROLS = (
    Control(
        name="alpha_without_rank",
        why="mlx-vlm 841: the branch is multiplied by alpha itself, r times too strong",
        swap={"scale": "alpha_itself"},
        must=(
            "init/grad/lora_b",
            *TRAJECTORY,
            "trained/output",
            "trained/loss",
            *TRAINED_GRADIENTS,
            *MERGE_ITEMS,
            "merge/output/unmerged",
            *ADAPTED,
            *STORED,
            *GRID,
        ),
        may=(*MERGE_RESIDUALS, *BOUNDS),
    ),
    Control(
        name="rs_scale_confused",
        why="TensorRT-LLM 1668: an adapter trained with alpha/r is served with alpha/sqrt(r)",
        lie={"scaling": "rslora"},
        must=(
            "init/grad/lora_b",
            *TRAJECTORY,
            "trained/output",
            "trained/loss",
            *TRAINED_GRADIENTS,
            *MERGE_ITEMS,
            "merge/output/unmerged",
            *ADAPTED,
            *STORED,
            *GRID,
        ),
        may=BOUNDS,
    ),
    Control(
        name="both_zero",
        why="relora 18: both factors start at zero, so each one's gradient is zero for ever",
        swap={"initialize_a": "zeros_a"},
        must=("init/draw/kaiming", "init/draw/gaussian", "init/grad/lora_b", *TRAJECTORY),
    ),
    Control(
        name="both_random",
        why="FastVideo PR 781: both factors start at random, so the model is another one before the first step",
        swap={"initialize_b": "normal_b"},
        must=("init/lora_b", "init/output", *INIT_LOSS, "init/grad/lora_a", *TRAJECTORY),
    ),
    Control(
        name="kaiming_fan_in_rank",
        why="common: the bound of A's draw is 1/sqrt(r), as if r were its fan-in",
        swap={"initialize_a": "kaiming_by_rank"},
        must=("init/draw/kaiming", "init/grad/lora_b", *TRAJECTORY),
    ),
    Control(
        name="kaiming_layout",
        why="common: the framework's initialiser is given A as [d,r], and takes r for the fan-in",
        swap={"framework_kaiming": "kaiming_on_our_layout"},
        must=("init/draw/framework",),
    ),
    Control(
        name="kaiming_left_zero",
        why="common: the initialiser is never called, and zeros are within every bound",
        swap={"framework_kaiming": "kaiming_left_zero"},
        must=("init/draw/bound_reached",),
    ),
    Control(
        name="branch_severed",
        why="unsloth PR 9331, peft 1142: the branch's value is right but no gradient reaches A and B",
        swap={"linear": "linear_severed"},
        must=(
            "init/grad/lora_[ab]",
            "init/has_grad/lora_[ab]",
            "trained/grad/lora_[ab]",
            "trained/has_grad/lora_[ab]",
            *TRAJECTORY,
            *ADAPTED,
            *STORED,
        ),
        may=NEAR,
    ),
    Control(
        name="input_gradient_missing",
        why="hand-written branches: X gets the base's gradient only, which B = 0 and a first layer both hide",
        swap={"linear": "linear_input_detached"},
        must=("trained/grad/x",),
    ),
    Control(
        name="backward_without_scale",
        why="hand-written branches: the backward pass forgets s in dA",
        swap={"linear": "linear_backward_unscaled"},
        must=("trained/grad/lora_a", *TRAJECTORY, *ADAPTED, *STORED),
        may=NEAR,
    ),
    Control(
        name="detach_forgotten",
        why="common: X is detached for the branch in one code path and not in the other",
        swap={"linear_detached": "linear_input_attached"},
        must=("detached/grad/x",),
    ),
    Control(
        name="cross_entropy_unweighted",
        why="Liger-Kernel 968: what reaches the loss from above, row by row, is ignored",
        swap={"cross_entropy": "cross_entropy_unweighted"},
        must=(*INIT_LOSS, *TRAJECTORY, "trained/loss", *TRAINED_GRADIENTS, *ADAPTED, *STORED),
        may=NEAR,
    ),
    Control(
        name="squared_error_unweighted",
        why="Liger-Kernel 968, on the other loss",
        swap={"squared_error": "squared_error_unweighted"},
        at={"loss": "squared_error"},
        must=(*INIT_LOSS, *TRAJECTORY, "trained/loss", *TRAINED_GRADIENTS, *ADAPTED, *STORED),
        may=NEAR,
    ),
    Control(
        name="base_trained",
        why="axolotl PR 159: the base was never frozen and moves with the factors",
        swap={"trainable": "everything_trainable"},
        must=(
            "init/has_grad/base",
            "trained/has_grad/base",
            "sgd/base/after",
            *TRAJECTORY,
            *ADAPTED,
            *STORED,
        ),
        may=NEAR,
    ),
    Control(
        name="one_learning_rate",
        why="common: the second parameter group is lost and B trains at A's learning rate",
        lie={"lr_b": 0.01},
        must=(*TRAJECTORY, *ADAPTED, *STORED),
        may=NEAR,
    ),
    Control(
        name="checkpoint_cast",
        why="common: adapters are saved in a lower precision and loaded as if nothing had happened",
        swap={"save": "save_as_float32", "load": "load_as_float64"},
        must=("checkpoint/lora_[ab]",),
    ),
    Control(
        name="merge_without_scale",
        why="microsoft/LoRA 103: A B is added to the base without s",
        swap={"merge": "merge_unscaled"},
        must=(*MERGE_ITEMS, *MERGE_RESIDUALS, "merge/output/difference"),
    ),
    Control(
        name="merge_transposed",
        why="microsoft/LoRA 103: the delta is added transposed, which a square base does not refuse",
        swap={"merge": "merge_transposed"},
        at={"d_out": 8},
        must=(*MERGE_ITEMS, *MERGE_RESIDUALS, "merge/output/difference"),
    ),
    Control(
        name="merge_twice",
        why="microsoft/LoRA 34: merging into a base that holds the delta already",
        swap={"merge": "merge_twice"},
        must=(*MERGE_ITEMS, *MERGE_RESIDUALS, "merge/output/difference"),
    ),
    Control(
        name="unmerge_uncast",
        why="peft PR 3166: the base comes back from bfloat16 in float64, and its residual is not what is stored",
        swap={"unmerge": "unmerge_uncast"},
        must=("merge/bf16/unmerged", "merge/bf16/restored"),
    ),
    Control(
        name="requantize_wrong_base",
        why="unsloth-zoo PR 810: the delta is added to the original weight, not to the one it was trained on",
        swap={"merge_quantized": "merge_into_original"},
        must=(*STORED, *GRID, "requantize/error/merge:within"),
        may=("requantize/error/requantize:within",),
    ),
    Control(
        name="requantize_loses_delta",
        why="peft 2321: called merged before the last rounding, which may swallow the adapter",
        swap={"survival": "survival_as_merged"},
        must=("requantize/survival",),
    ),
    Control(
        name="quantize_half_up",
        why="common: floor(q + 0.5) for a rounding that takes ties to even",
        swap={"quantize": "quantize_half_up"},
        must=("requantize/ties",),
        # A bfloat16 weight can be half of its group's largest, which is a tie; a float64 one hardly ever is.
        may=(
            "requantize/codes_after",
            "requantize/error/requantize:close",
            "requantize/survival",
            "requantize/output_error",
        ),
    ),
    Control(
        name="group_axis",
        why="common: groups run along the columns' axis, which a square base does not show",
        swap={"quantize": "quantize_other_axis", "dequantize": "dequantize_other_axis"},
        must=(
            "requantize/codes",
            "requantize/scales",
            "requantize/ties",
            "requantize/error/quantize",
            *ADAPTED,
            *STORED,
            *GRID,
            "requantize/error/requantize:within",
        ),
        may=("requantize/error/merge:within",),
    ),
    Control(
        name="bracketing_swapped",
        why="common: the branch is computed as X(AB), right to the last digits and many times the price",
        swap={"branch": "branch_as_product", "branch_product": "product_as_branch"},
        must=("order/operations/*", "order/saved_bytes/*"),
    ),
    Control(
        name="branch_in_float32",
        why="common: the branch runs under autocast beside a base that does not",
        swap={"branch": "branch_in_float32", "branch_product": "product_in_float32"},
        must=("order/output/*", "order/saved_bytes/*"),
    ),
)
