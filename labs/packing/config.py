"""What can be set in the packing lab. Values only: every formula over them is written once on each side."""

from dataclasses import dataclass
from typing import Literal

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Documents, the model they go through, how they are cut, split and averaged, and one update of each optimizer."""

    lengths: tuple[int, ...] = setting((3, 5, 2, 9), "tokens of each document, the last is end-of-sequence", ge=1)
    limit: int = setting(6, "tokens that a document may have; what is longer is truncated", ge=3)
    truncation: Literal["right", "left"] = setting("right", "the side that the three routes cut")
    pad_id: int = setting(0, "id of padding, and of end-of-sequence: they share it", ge=0)
    completion: int = setting(2, "supervised tokens behind a prompt that fills the limit alone", ge=2)
    roles: str = setting("uuaatuaa", "a conversation, one letter a token: u user, a assistant, t tool")
    vocabulary: int = setting(7, "token ids", ge=3)
    d_model: int = setting(3, "width of the embedding", ge=1)
    heads: int = setting(2, "attention heads", ge=1)
    head_dim: int = setting(4, "width of one head, even", ge=2)
    rope_base: float = setting(100.0, "base of the rotary frequencies", gt=1.0)
    micro_batches: tuple[int, ...] = setting((1, 2, 1), "documents in each micro-batch", ge=1)
    window: int = setting(2, "micro-batches of one update; the last window of an epoch may have fewer", ge=1)
    ranks: tuple[int, ...] = setting((3, 1), "documents on each data-parallel rank", ge=1)
    shards: int = setting(3, "parts that the packed row is cut into along the sequence", ge=1)
    sgd_lr: float = setting(0.5, "learning rate of the SGD update", gt=0.0)
    adamw_lr: float = setting(0.01, "learning rate of the AdamW update", gt=0.0)
    eps: float = setting(1e-6, "AdamW's eps; a tiny gradient's rounding is multiplied by adamw_lr/eps", gt=0.0)
    weight_decay: float = setting(0.1, "AdamW's decoupled decay", ge=0.0)
