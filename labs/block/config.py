"""What can be set in the block lab. Values only: every formula over them is written once on each side."""

from dataclasses import dataclass
from typing import Literal

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Sizes, loss, training, checkpoint and the stochastic run of one transformer layer with a head."""

    batch: int = setting(2, "sequences", ge=1)
    positions: int = setting(5, "positions of each sequence; the first is never supervised", ge=2)
    hidden: int = setting(8, "features of x and of the residual stream", ge=2)
    heads: int = setting(2, "query heads; divides hidden", ge=1)
    kv_heads: int = setting(1, "key/value heads; divides heads", ge=1)
    ffn: int = setting(12, "features between the feed-forward projections", ge=1)
    vocabulary: int = setting(7, "columns of the head", ge=2)
    x: tuple[tuple[float, ...], ...] = setting((), "one sequence, [positions][hidden], for every one; none: drawn")
    rope: bool = setting(default=True, doc="rotate queries and keys by their position")
    rope_base: float = setting(10000.0, "base of the rotation's angles", gt=1.0)
    epsilon: float = setting(1e-5, "epsilon of the norms", gt=0.0)
    supervised: Literal["all", "last"] = setting("all", "all positions but the first, unequally weighted; or the last")
    loss_scale: float = setting(1.7, "factor on the loss; away from 1, or an ignored upstream gradient can't show")
    extras: bool = setting(default=True, doc="fused and padded attention and causality too; a large layer has no time")
    steps: int = setting(8, "AdamW steps; 0: no training, checkpoint or resumption", ge=0)
    checkpoint_after: int = setting(3, "steps before the checkpoint that training resumes from", ge=1)
    steps_done: int = setting(0, "updates that the optimizer counts as done when training starts", ge=0)
    lr: float = setting(0.02, "learning rate of AdamW", gt=0.0)
    beta1: float = setting(0.9, "decay of the first moment", ge=0.0, lt=1.0)
    beta2: float = setting(0.999, "decay of the second moment", ge=0.0, lt=1.0)
    adam_epsilon: float = setting(1e-3, "epsilon of AdamW; large enough for its place to show", gt=0.0)
    weight_decay: float = setting(0.1, "decoupled weight decay; at 0 a wrong one can't show", ge=0.0)
    sgd_lr: float = setting(0.1, "learning rate of the SGD step that stands beside AdamW", gt=0.0)
    samples: int = setting(5, "sequences that the stochastic run draws its batches from", ge=1)
    dropout: float = setting(0.25, "share of feed-forward features that the stochastic run drops", ge=0.0, lt=1.0)
    torch_seed: int = setting(1, "seed of torch's random state when the stochastic run starts", ge=0)
