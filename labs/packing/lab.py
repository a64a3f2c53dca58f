"""The packing lab: documents alone, in a padded batch and packed in a row; what is learned and how it is averaged."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labs.core.lab import Array, Arrays, Lab, Rule, Stage, Table, Witness, identical, zero
from labs.kernels import cross_entropy
from labs.packing import reference_data as data
from labs.packing import reference_model as model
from labs.packing.config import Config
from labs.packing.controls import CONTROLS
from labs.packing.inputs import inputs
from labs.packing.reference import reference

EQUATIONS = """
x = E[ids];  q, k, v = x W_q, x W_k, x W_v;  q, k turned by their position (RoPE, halves paired)
P = softmax(q k^T / sqrt(D) where visible);  logits = (x + (P v) W_o) W_head;  l_t = -log softmax(logits_t)[target_t]
target_t = label_(t+1) of the same document, else none;  visible: j <= i in the same document;  positions from 0 in each
count = the targets, loss = sum l / count, 0 when there are none

Three routes, one value:  alone [L] for each document;  padded [B,T], a row each, filled up on the right;  packed [N]
What a sum of losses is divided by:
  token_mean     sum l / count                          the loss of the batch, however it is split
  document_mean  mean over documents of sum l / count   short documents weigh more
  micro_mean     mean over micro-batches of the same    what accumulating means gives, when their counts differ
  ranks          local sum * W / global count           averaged over W ranks this is token_mean
  accumulate     micro-batch sum / count of the window  added up over the window this is its token_mean
"""

ITEMS = {
    "*/ids": "token ids: joined document by document (alone, truncate), [B,T] (padded), [N] (packed)",
    "*/targets": "what each token predicts, -100 where nothing",
    "*/supervised": "where there is a target",
    "*/positions": "from 0 in each document, 0 for padding; continued where that is the mistake",
    "*/mask": "[T,T] for each row: which key a query sees",
    "alone/mask/doc*": "lower triangle",
    "*/cu_seqlens": "where documents start, and the end; alone: (0, L) for each",
    "*/[qk]": "turned by position, [N,H,D], document by document",
    "*/logits/doc*": "logits of one document",
    "*/loss_sum": "sum l",
    "*/count": "number of targets",
    "*/loss": "sum l divided by the count, or by what the item's name says",
    "*/grad/*": "gradient of that loss; x is the embedded input of every token, document by document",
    "[ap]*/sgd/*": "parameter after one SGD update",
    "[ap]*/adamw/*": "parameter after one AdamW update from the same start",
    "checkpoint/*": "updated parameters of the packed route, loaded in a new process: the same bits",
    "padded/padding/logits": "logits of padding, which sees nothing: E[pad] W_head",
    "padded/padding/grad": "gradient of the embedded input of padding: 0",
    "isolation/inside": "derivative of each document's logits, weighted by the probe, by its own embedded input",
    "isolation/across": "the same by the other documents' inputs: 0",
    "truncate/*/labels": "labels that are left; the first of a document has no predictor, whichever side was cut",
    "prompted/*/empty": "a document without targets is reported: the right side cut takes the whole completion",
    "turns/*/learned": "tokens of every assistant turn, or of the final one; never the user's or a tool's",
    "zero/connected": "the loss of a batch without labels still has a graph",
    "zero/framework_mean_is_nan": "the framework's own mean over no targets is NaN",
    "unaffected/tokens": "tokens in each row of that batch: the documents, the unlabelled one, the empty one",
    "unaffected/document_mean": "as without the two rows: they have no mean",
    "unaffected/added/grad": "gradient of the embedded inputs of an unlabelled and of an empty row: 0",
    "ranks/mean": "mean of the ranks' losses: the token mean",
    "wrong/leak/logits": "logits [N,V] of the packed row when a document sees the ones before it",
}


def rules(config: Config) -> tuple[Rule, ...]:
    """The checks that are not `close` or `exact`."""
    padding = [zero("padded/padding/grad")] if _has_padding(config) else []
    updated = [f"{optimizer}/{name}" for optimizer in ("sgd", "adamw") for name in model.PARAMETERS]
    return (
        *padding,
        zero("isolation/across"),
        zero("zero/loss"),
        *(zero(f"zero/grad/{name}") for name in (*model.PARAMETERS, "x")),
        zero("unaffected/added/grad"),
        zero("prompted/right/loss"),
        *(identical(f"checkpoint/{name}", f"packed/{name}") for name in updated),
    )


def _has_padding(config: Config) -> bool:
    return len({min(length, config.limit) for length in config.lengths}) > 1


def _row(config: Config, arrays: Arrays, held: Arrays) -> tuple[Array, Array, list[int]]:
    """Logits and targets of the packed row, and the lengths of its documents."""
    docs = data.documents(config, held["tokens"], config.truncation)
    row = data.packed(docs)
    moved = arrays["nudge"] - held["nudge"]  # the embedded input is no input; what moves the nudge moves it
    run = model.forward(config, arrays, row["ids"], row["positions"], row["mask"], moved)
    return run.logits, row["targets"], [len(ids) for ids in docs]


def _token_mean(config: Config, arrays: Arrays, held: Arrays) -> Any:
    logits, targets, _ = _row(config, arrays, held)
    return cross_entropy.forward(logits, targets)[0]


def _document_mean(config: Config, arrays: Arrays, held: Arrays) -> Any:
    return _mean_of_means(*_row(config, arrays, held))


def _micro_mean(config: Config, arrays: Arrays, held: Arrays) -> Any:
    logits, targets, lengths = _row(config, arrays, held)
    return _mean_of_means(logits, targets, [sum(group) for group in data.grouped(lengths, config.micro_batches)])


def _mean_of_means(logits: Array, targets: Array, sizes: Sequence[int]) -> Any:
    cuts = np.cumsum(sizes)[:-1]
    pairs = zip(np.split(logits, cuts), np.split(targets, cuts), strict=True)
    means = [cross_entropy.forward(part, row)[0] for part, row in pairs if np.any(row >= 0)]
    return sum(means) / len(means)


def _probed(config: Config, arrays: Arrays, held: Arrays) -> Any:
    return np.sum(_row(config, arrays, held)[0] * held["probe"])


WITNESSES = (
    *(
        Witness(f"{way}/grad/{name}", _token_mean, name)
        for name in model.PARAMETERS
        for way in ("alone", "padded", "packed", "unaffected", "ranks", "accumulate")
    ),
    *(Witness(f"{way}/grad/x", _token_mean, "nudge") for way in ("alone", "padded", "packed", "normaliser/token_mean")),
    Witness("normaliser/document_mean/grad/x", _document_mean, "nudge"),
    Witness("normaliser/micro_mean/grad/x", _micro_mean, "nudge"),
    Witness("isolation/inside", _probed, "nudge"),
)

STAGES = (
    Stage("alone", ("alone/*",)),
    Stage("padded", ("padded/*",)),
    Stage("packed", ("packed/*",)),
    Stage("checkpoint", ("checkpoint/*",), after=("packed",)),
    Stage("isolation", ("isolation/*",)),
    Stage("data", ("truncate/*", "prompted/*", "turns/*", "shards/*")),
    Stage("zero", ("zero/*", "facts/*")),
    Stage("unaffected", ("unaffected/*",)),
    Stage("normalised", ("normaliser/*",)),
    Stage("accumulated", ("ranks/*", "accumulate/*", "windows/*")),
    Stage("wrong", ("wrong/*",)),
)


def problems(config: Config) -> tuple[tuple[str, str], ...]:
    """What single bounds can't say."""
    documents = len(config.lengths)
    found = [
        (key, f"{sum(sizes)} documents, expected {documents}, as lengths has")
        for key, sizes in (("micro_batches", config.micro_batches), ("ranks", config.ranks))
        if sum(sizes) != documents
    ]
    wrong = (
        (documents < 2, "lengths", f"{documents} document, expected at least 2"),  # noqa: PLR2004 (the sentence says it)
        (max(config.lengths, default=0) < 3, "lengths", "no document of 3 tokens, so no score has a gradient"),  # noqa: PLR2004
        (config.head_dim % 2 > 0, "head_dim", f"{config.head_dim} is odd, expected pairs of halves"),
        (config.pad_id >= config.vocabulary, "pad_id", f"{config.pad_id}, expected an id below {config.vocabulary}"),
        (not set(config.roles) <= set("uat"), "roles", f"{config.roles!r}, expected letters u, a and t"),
        ("a" not in config.roles[1:], "roles", f"{config.roles!r}: no assistant token has a predictor"),
    )
    return (*found, *((key, text) for is_wrong, key, text in wrong if is_wrong))


def footprint(config: Config) -> int:
    """Bytes at the peak of both processes together, roughly: so many arrays of each shape live at once."""
    tokens = sum(min(length, config.limit) for length in config.lengths)
    scores = config.heads * tokens**2
    wide = config.heads * config.head_dim
    parameters = 2 * config.vocabulary * config.d_model + 4 * config.d_model * wide
    activations = tokens * (4 * config.vocabulary + 4 * wide + (2 + len(config.lengths)) * config.d_model)
    return 8 * (16 * scores + 20 * activations + 60 * parameters)


def tables(config: Config, found: Mapping[str, Array]) -> tuple[Table, ...]:
    """How far each mistake moves the loss of the packed row."""
    right = float(found["packed/loss"])
    losses = {
        "cross-sample visibility": "wrong/leak/loss",
        "label shifted twice": "wrong/double_shift/loss",
        "positions not restarted": "wrong/positions_continue/loss",
        "mean of document means": "normaliser/document_mean/loss",
        "mean of micro-batch means": "normaliser/micro_mean/loss",
    }
    rows = tuple((name, float(found[item]), float(found[item]) - right) for name, item in losses.items())
    return (Table("What a mistake costs", ("mistake", "loss", "off by"), (("none", right, 0.0), *rows)),)


LAB = Lab(
    name="packing",
    title="documents alone, padded and packed: masks, labels, truncation, normalisers, one update",
    equations=EQUATIONS,
    items=ITEMS,
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=rules,
    witnesses=WITNESSES,
    stages=STAGES,
    controls=CONTROLS,
    footprint=footprint,
    problems=problems,
    facts={"facts/masked_row_is_nan": "the framework's own attention gives NaN to a query that sees nothing"},
    tables=tables,
)
