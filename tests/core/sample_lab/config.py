"""A config with every type of value that a config can hold."""

from dataclasses import dataclass
from typing import Literal

from labs.core.setting import setting


@dataclass(frozen=True)
class Sgd:
    steps: int = setting(3, "number of steps", ge=0)
    lr: float = setting(0.1, "learning rate", gt=0, lt=10)


@dataclass(frozen=True)
class Config:
    rank: int = setting(2, "rank of the branch", ge=1)
    alpha: float = setting(4.0, "numerator of the scale", unit="1")
    bias: bool = setting(default=False, doc="add a bias")
    loss: Literal["cross_entropy", "squared_error", "off"] = setting("cross_entropy", "loss behind the output")
    bits: Literal[4, 8] = setting(8, "bits of a code")
    shares: tuple[int, ...] = setting((5, 3), "samples of each rank", ge=1)
    window: tuple[int, float] = setting((1, 0.5), "two numbers of different type")
    tensors: str | None = setting(None, "file with real weights")
    label: str = setting("off", "any text")
    sgd: Sgd = setting(Sgd(steps=5), "plain gradient descent")
