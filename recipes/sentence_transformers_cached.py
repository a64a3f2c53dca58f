"""sentence-transformers' cached ranking loss over real ranks; tested with sentence-transformers 6.2.0, torch 2.13.0.

    lab run contrastive --swap local_loss=recipes/sentence_transformers_cached.py:local_loss --only 'rank*/cached/*' --only 'rank*/local/*'
    lab run contrastive --swap local_loss=recipes/sentence_transformers_cached.py:by_cosine --only 'rank*/cached/*' --only 'rank*/local/*'

Two directions with a softmax each are symmetric InfoNCE; the features are of length 1 already, so dot products do.

Found: the cached loss agrees over two ranks, chunk by chunk. By cosine the encoders' gradients are the same, and
those of the features are not: their part along the feature is gone, as its length no longer counts.
"""

import torch
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim, dot_score

PRELOAD = ("sentence_transformers.sentence_transformer.losses",)


def local_loss(f_a, f_b, keys_a, keys_b, factor, own, similarity=dot_score):
    """The own rows against all, in chunks of 3 rows; the loss gathers the keys itself."""
    made = CachedMultipleNegativesRankingLoss(
        torch.nn.Sequential(torch.nn.Identity()),  # the model that embeds is not asked
        scale=factor,
        similarity_fct=similarity,
        mini_batch_size=3,
        gather_across_devices=keys_a is not f_a,
        directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction",
    )
    return made.calculate_loss([[f_a], [f_b]])


def by_cosine(*operands):
    """The default similarity, which makes the length 1 once more."""
    return local_loss(*operands, similarity=cos_sim)
