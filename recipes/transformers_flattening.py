"""transformers' flattening collator, and its causal mask over packed rows; tested with transformers 5.24.0, torch 2.13.0.

    lab run packing --swap pack=recipes/transformers_flattening.py:pack
    lab run packing --swap positions=recipes/transformers_flattening.py:positions
    lab run packing --swap cu_seqlens=recipes/transformers_flattening.py:cu_seqlens
    lab run packing --swap mask=recipes/transformers_flattening.py:mask
    lab run packing --swap mask=recipes/transformers_flattening.py:mask_with_all_ones
    lab run packing --swap mask=recipes/transformers_flattening.py:mask_with_a_cache

Found: row, segments, positions and boundaries agree, and so does the mask as long as it is told nothing. An all-ones
mask or an empty cache switches isolation off: the torch side equals mask_all_ones.
"""

import torch
from transformers import DataCollatorWithFlattening, DynamicCache, LlamaConfig
from transformers.masking_utils import create_causal_mask

PRELOAD = ("transformers.data.data_collator", "transformers.masking_utils", "transformers.cache_utils")
CONFIG = LlamaConfig(attn_implementation="eager", num_hidden_layers=1)


def flattened(rows):
    """One flat row of these rows of ids, [1,N], with everything that the collator can say of it."""
    collate = DataCollatorWithFlattening(return_tensors="pt", return_seq_idx=True, return_flash_attn_kwargs=True)
    return collate([{"input_ids": row} for row in rows])


def pack(ids, learned):
    """Segments are the collator's seq_idx."""
    made = flattened(ids)
    return made["input_ids"], torch.cat(list(learned))[None], made["seq_idx"].long()


def positions(segments):
    """position_ids of every row's documents; padding has 0."""
    empty = torch.zeros(0, dtype=torch.int64)  # the collator refuses a batch without any token
    rows = [flattened(documents(row))["position_ids"][0] if (row >= 0).any() else empty for row in segments]
    return torch.stack([torch.nn.functional.pad(row, (0, segments.shape[1] - len(row))) for row in rows])


def cu_seqlens(segments):
    """cu_seq_lens_q over all documents, padding left out."""
    return flattened([d for row in segments for d in documents(row)])["cu_seq_lens_q"].to(torch.int32)


def documents(row):
    """Each document's segment numbers, one after the other."""
    return list(torch.split(row[row >= 0], torch.unique_consecutive(row[row >= 0], return_counts=True)[1].tolist()))


def mask(segments):
    """No mask where nothing is padded: packing is then told from position_ids alone."""
    padded = segments < 0
    return visible(segments, attention_mask=~padded if padded.any() else None)


def mask_with_all_ones(segments):
    """As a tokenizer or another collator hands it over, though nothing is padded."""
    return visible(segments, attention_mask=segments >= 0)


def mask_with_a_cache(segments):
    """As in a forward pass with use_cache=True, empty as the cache may be."""
    padded = segments < 0
    return visible(segments, ~padded if padded.any() else None, cache=DynamicCache(config=CONFIG))


def visible(segments, attention_mask, cache=None):
    """What create_causal_mask lets a query see; that padding sees nothing is ours."""
    real = segments >= 0
    made = create_causal_mask(
        CONFIG,
        torch.zeros(*segments.shape, 1, dtype=torch.float64),
        attention_mask,
        cache,
        position_ids=positions(segments),
        allow_is_causal_skip=False,
    )
    return (made[:, 0] == 0) & real[:, :, None]
