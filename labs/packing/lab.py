"""The packing lab: documents alone, in a padded batch and packed in one row; what is learned, and what it is divided by."""

from collections.abc import Sequence
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

LAB = Lab(
    name="packing",
    title="documents alone, padded and packed: masks, labels, truncation, normalisers, one update",
    equations="",
    items={"*": ""},
    config=Config,
    inputs=inputs,
    reference=reference,
    rules=lambda c: (
        *(zero(n) for n in ("padded/grad/padding",)),
        zero("isolation/across"), zero("zero/loss"), zero("unaffected/grad/added"), zero("prompted/right/loss"),
        *(zero(f"zero/grad/{n}") for n in (*model.PARAMETERS, "x")),
        *(identical(f"checkpoint/{o}/{n}", f"packed/{o}/{n}") for o in ("sgd","adamw") for n in model.PARAMETERS),
    ),
    witnesses=(),
    stages=(
        Stage("alone", ("alone/*",)), Stage("padded", ("padded/*",)), Stage("packed", ("packed/*",)), Stage("checkpoint", ("checkpoint/*",), after=("packed",)),
        Stage("isolation", ("isolation/*",)), Stage("data", ("truncate/*", "prompted/*", "turns/*", "shards/*")), Stage("zero", ("zero/*", "facts/*")), Stage("unaffected", ("unaffected/*",)),
        Stage("normalised", ("normaliser/*",)), Stage("accumulated", ("ranks/*", "accumulate/*", "windows/*")), Stage("wrong", ("wrong/*",)),
    ),
    controls=CONTROLS,
    footprint=lambda c: 1,
    facts={"facts/masked_row_is_nan": ""},
)
