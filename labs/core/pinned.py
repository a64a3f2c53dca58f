"""Values pinned with a release: what each item of a lab was at its default config, in one number pair each.

When the two sides disagree they tell which side moved: inputs are bit-identical everywhere, so at the default config
both sides still give the pinned values, or the one that does not is the one that changed. A wrong formula in the
reference's forward pass can be told from a wrong torch side in no other way. When the two sides agree and neither has
them, both are wrong in the same way, or the mechanics changed on purpose.

`python -m labs.core.pinned LAB` writes a lab's pinned.json again.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from labs.core.inputs import Draw
from labs.core.lab import Array, Lab
from labs.core.registry import load

CLOSENESS = 1e-9  # relative to the sum of magnitudes; correct sides differ by about 1e-15


def fingerprint(array: Array) -> list[float]:
    """Two weighted sums of the elements (no symmetry survives both) and the sum of magnitudes that scales them."""
    values = np.asarray(array, dtype=np.float64).ravel()
    angles = np.arange(1, values.size + 1, dtype=np.float64)
    return [float(np.cos(angles) @ values), float(np.sin(1.7 * angles) @ values), float(np.sum(np.abs(values)))]


def moved(pinned: Mapping[str, list[float]], arrays: Mapping[str, Array]) -> frozenset[str]:
    """The items whose values are no longer the pinned ones, or that are gone; items never pinned say nothing."""
    return frozenset(name for name, was in pinned.items() if name not in arrays or _differs(was, arrays[name]))


def _differs(was: list[float], array: Array) -> bool:
    limit = CLOSENESS * max(was[2], 1e-300)
    return not all(abs(a - b) <= limit for a, b in zip(was, fingerprint(array), strict=True))


def read(lab: Lab) -> dict[str, list[float]]:
    """The lab's pinned values; none when the lab has no pinned.json (a user's own lab need not)."""
    try:
        found: dict[str, list[float]] = json.loads((lab.path / "pinned.json").read_text())
    except FileNotFoundError:
        return {}
    return found


def current(lab: Lab) -> dict[str, list[float]]:
    """The values to pin: the reference at the default config, seed 0."""
    config = lab.config()
    reference = lab.reference(config, lab.inputs(config, Draw(0)))
    return {name: fingerprint(array) for name, array in reference.items()}


def write(lab: Lab) -> Path:
    """Pin the lab's current values; returns the file."""
    path = lab.path / "pinned.json"
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in current(lab).items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return path


if __name__ == "__main__":
    for lab_name in sys.argv[1:]:
        sys.stdout.write(f"{write(load(lab_name))}\n")
