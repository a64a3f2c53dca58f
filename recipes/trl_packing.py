"""TRL's packing and padding-free collator; tested with trl 1.16.0, torch 2.13.0.

    lab run packing --swap pack=recipes/trl_packing.py:best_fit
    lab run packing --swap pack=recipes/trl_packing.py:wrapped
    lab run packing --swap positions=recipes/trl_packing.py:positions
    lab run packing --swap cu_seqlens=recipes/trl_packing.py:cu_seqlens

Best fit sorts documents by length, longest first; the row is put back into the lab's order by a column that travels
along, so that what was cut, lost or mixed would show.

Found: best fit keeps every boundary and its collator's positions agree; "wrapped" forgets where documents end: the
torch side equals boundaries_lost.
"""

import torch
from datasets import Dataset
from trl.data_utils import pack_dataset
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

PRELOAD = ("datasets", "trl.data_utils", "trl.trainer.sft_trainer")


def best_fit(ids, learned):
    """strategy="bfd": boundaries are kept, and come back as seq_lengths."""
    packed = packed_rows(ids, learned, "bfd")
    lengths = torch.tensor(packed["seq_lengths"][0])
    owners = torch.tensor(packed["owner"][0])
    named = torch.stack([part[0] for part in torch.split(owners, lengths.tolist())])  # of each stretch of the row
    segments = torch.repeat_interleave(named, lengths)
    return in_order(packed, segments)


def wrapped(ids, learned):
    """strategy="wrapped": nothing says any more where a document ends."""
    packed = packed_rows(ids, learned, "wrapped")
    return in_order(packed, torch.zeros(len(packed["owner"][0]), dtype=torch.int64))


def packed_rows(ids, learned, strategy):
    """All documents in one row as long as they are together."""
    owners = [[number] * len(row) for number, row in enumerate(ids)]
    columns = {"input_ids": [r.tolist() for r in ids], "learned": [r.tolist() for r in learned], "owner": owners}
    made = pack_dataset(Dataset.from_dict(columns), max(1, sum(map(len, ids))), strategy)
    return made[:]


def in_order(packed, segments):
    """[1,N] ids, learned and segments, document by document."""
    order = torch.argsort(torch.tensor(packed["owner"][0]), stable=True)
    row, marks = torch.tensor(packed["input_ids"][0]), torch.tensor(packed["learned"][0])
    return row[order][None], marks[order][None], segments[order][None]


def positions(segments):
    """position_ids of the padding-free collator; padding has 0."""
    rows = [collated(row)["position_ids"][0] if (row >= 0).any() else row[:0] for row in segments]
    return torch.stack([torch.nn.functional.pad(row, (0, segments.shape[1] - len(row))) for row in rows])


def cu_seqlens(segments):
    """Over all documents, padding left out."""
    return collated(segments[segments >= 0])["cu_seq_lens_q"]


def collated(row):
    """One packed row through the collator."""
    real = row[row >= 0]
    lengths = torch.unique_consecutive(real, return_counts=True)[1].tolist()
    return DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(
        [{"input_ids": real.tolist(), "seq_lengths": lengths}]
    )
