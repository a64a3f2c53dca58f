"""What can be set in the contrastive lab. Values only: every formula over them is written once on each side."""

from dataclasses import dataclass

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Processes, the batch and how they share it, sizes of the two encoders, temperature, learning rate."""

    world_size: int = setting(2, "ranks that train together, over Gloo", ge=1, le=64, unit="processes")
    batch: int = setting(8, "pairs of samples on all ranks together; at least one on each", ge=2)
    shares: tuple[int, ...] = setting(
        (), "pairs on each rank, in rank order; none: as even as can be, the first ranks have one more"
    )
    d_a: int = setting(7, "columns of x_a: features that encoder a reads", ge=1)
    d_b: int = setting(5, "columns of x_b: features that encoder b reads", ge=1)
    d: int = setting(4, "columns of both encoders' features; a single one has no direction to learn", ge=2)
    log_scale: float = setting(2.659260036932778, "log of the factor on the cosines; log(1/0.07) at first")
    micro_batches: tuple[int, ...] = setting((1, 2, 3), "pairs in a cached micro-batch, beside all that a rank has")
    lr: float = setting(0.05, "learning rate of the SGD update", gt=0.0)
