"""open_clip's ClipLoss and its gathers over real ranks; tested with open_clip 3.3.0, torch 2.14.1.

    lab run contrastive --swap gather=recipes/open_clip_loss.py:gather
    lab run contrastive --swap gather_detached=recipes/open_clip_loss.py:gather_detached
    lab run contrastive --swap global_loss=recipes/open_clip_loss.py:global_loss --only 'rank*/global/*'
    lab run contrastive --swap local_loss=recipes/open_clip_loss.py:local_loss --only 'rank*/local/*' --only 'rank*/cached/*'
    lab run contrastive --swap global_loss=recipes/open_clip_loss.py:global_loss_by_default

ClipLoss gathers by itself, with gradients or without: routes that gather the other way on purpose are not asked of it.

Found: with gather_with_grad=True loss and gradients agree over two ranks; ClipLoss by default drops what other ranks
owe: the torch side equals gather_detached_global, and agrees with the gradients of the route detached_global.
"""

import torch.distributed as dist
from open_clip.loss import ClipLoss, gather_features

PRELOAD = ("open_clip.loss",)


def gather(x, counts, rank):
    """gather_with_grad=True."""
    return gather_features(x, x, gather_with_grad=True, rank=rank, world_size=len(counts))[0]


def gather_detached(x, counts, rank):
    """gather_with_grad=False: the own rows alone keep their gradient."""
    return gather_features(x, x, rank=rank, world_size=len(counts))[0]


def global_loss(f_a, f_b, keys_a, keys_b, factor, own):
    """All rows against all rows, gathered by ClipLoss itself."""
    return clip(f_a, f_b, keys_a, factor, gather_with_grad=True)


def local_loss(f_a, f_b, keys_a, keys_b, factor, own):
    """The own rows against all."""
    return clip(f_a, f_b, keys_a, factor, local_loss=True, gather_with_grad=True)


def global_loss_by_default(f_a, f_b, keys_a, keys_b, factor, own):
    """ClipLoss as it is when only rank and world size are given."""
    return clip(f_a, f_b, keys_a, factor)


def clip(f_a, f_b, keys_a, factor, **options):
    """Where the keys are the own rows, no other rank takes part."""
    alone = keys_a is f_a
    rank, world = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())
    return ClipLoss(rank=rank, world_size=world, **options)(f_a, f_b, factor)
