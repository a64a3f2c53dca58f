"""What can be set in the lora lab. Values only: every formula over them is written once on each side."""

from dataclasses import dataclass
from typing import Literal

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Sizes, scale, loss, initialisation, training and quantisation of one low-rank branch on a frozen base."""

    batch: int = setting(2, "sequences", ge=1)
    positions: int = setting(3, "positions of each sequence; x is [batch, positions, d_in]", ge=1)
    d_in: int = setting(8, "features in: rows of the base and of lora_a", ge=2)
    d_out: int = setting(12, "features out: columns of the base and of lora_b", ge=2)
    rank: int = setting(3, "columns of lora_a, rows of lora_b", ge=1)
    alpha: float = setting(5.0, "numerator of the scale; away from rank, or faults in the scale can't show", gt=0.0)
    scaling: Literal["classic", "rslora"] = setting("classic", "scale = alpha/rank, or alpha/sqrt(rank)")
    loss: Literal["cross_entropy", "squared_error"] = setting("cross_entropy", "through a fixed head, or to a target")
    classes: int = setting(5, "columns of the head that cross_entropy goes through", ge=2)
    init: Literal["kaiming", "gaussian"] = setting("kaiming", "how lora_a is drawn; lora_b starts at zero")
    init_std: float = setting(0.5, "standard deviation of the gaussian draw", gt=0.0)
    steps: int = setting(4, "SGD steps; lora_a moves from the second on, as lora_b starts at zero", ge=2)
    lr_a: float = setting(0.01, "learning rate of lora_a", gt=0.0)
    lr_b: float = setting(0.05, "learning rate of lora_b", gt=0.0)
    bits: Literal[4, 8] = setting(4, "width of the integer codes of a quantised base", unit="bits")
    group: int = setting(4, "rows of the base that share a quantisation scale; divides d_in", ge=2)
