import numpy as np
import pytest

from labs.core.investigate import Scene, _telling
from labs.core.lab import Control

ITEM = {"loss": np.array(1.0)}


def scene(*, spoils):
    return Scene("", {}, {}, {}, {"fault": ITEM}, {"fault": frozenset(ITEM if spoils else ())})


@pytest.mark.parametrize(
    ("here", "at_default", "at", "tells"),
    [
        pytest.param(True, True, {}, True, id="it changes the item here"),
        pytest.param(False, False, {}, True, id="the own part has the very fault, here and at the default config"),
        pytest.param(False, True, {}, False, id="it can't show at this config"),
        pytest.param(False, False, {"rank": 1}, False, id="it asks for another config"),
        pytest.param(True, False, {"rank": 1}, True, id="it asks for another config and shows here too"),
    ],
)
def test_a_fault_that_is_asleep_at_a_config_explains_nothing_there(here, at_default, at, tells):
    control = Control("fault", "", must=("loss",), at=at)
    found = _telling([control], scene(spoils=here), scene(spoils=at_default))
    assert set(found["fault"]) == (set(ITEM) if tells else set())
