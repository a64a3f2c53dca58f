"""Labels of token rows: what each position has to predict, which positions count, and where each one stands.

targets     target_t = ids_{t+1} where t + 1 is in the document of t and supervised, else IGNORED; the last has none
positions   0, 1, 2 … from the first token of each document
turns       a turn is a run of one role; the final one of a role is its last run
shapes      ids, documents, roles integer [..., T]; supervised boolean [..., T]; results as ids
backward    none: integers
source      the autoregressive factorisation p(x) = Π p(x_{t+1} | x_1 … x_t), document by document
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]

IGNORED = -100


def targets(ids: Integers, documents: Integers | None = None, supervised: Mask | None = None) -> Integers:
    """The token that each position predicts; IGNORED where there is none, or where that token is not supervised."""
    wanted = np.ones(ids.shape, bool) if supervised is None else supervised
    owner = np.zeros(ids.shape, np.int64) if documents is None else documents
    counts = wanted[..., 1:] & (owner[..., 1:] == owner[..., :-1])
    none = np.full((*ids.shape[:-1], 1), IGNORED, ids.dtype)
    return np.concatenate([np.where(counts, ids[..., 1:], IGNORED), none], axis=-1)


def count(found: Integers) -> np.int64:
    """How many targets are to be predicted."""
    return np.sum(found != IGNORED, dtype=np.int64)


def positions(documents: Integers) -> Integers:
    """Where each token stands in its document; a document is a run of one id."""
    index = np.broadcast_to(np.arange(documents.shape[-1]), documents.shape)
    first = np.maximum.accumulate(np.where(_starts(documents), index, 0), axis=-1)
    return index - first


def final_turn(roles: Integers, role: int) -> Mask:
    """The last run of a role; nothing when the role does not speak."""
    turn = np.cumsum(_starts(roles), axis=-1)  # the number of each token's turn, from 1
    last = np.max(np.where(roles == role, turn, 0), axis=-1, keepdims=True)
    final: Mask = turn == last
    return final


def _starts(ids: Integers) -> Mask:
    """True where a run of one id begins."""
    changes: Mask = np.ones(ids.shape, bool)
    changes[..., 1:] = ids[..., 1:] != ids[..., :-1]
    return changes
