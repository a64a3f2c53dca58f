import dataclasses

import numpy as np
import pytest

from labs.contrastive.config import Config
from labs.contrastive.inputs import inputs
from labs.contrastive.reference import ELSEWHERE, PARAMETERS, reference, rows_of
from labs.core.inputs import Draw

SHARED = [{}, {"shares": (5, 3)}, {"world_size": 4}, {"world_size": 3, "shares": (1, 5, 2)}]


def items(changes=(), seed=0):
    config = dataclasses.replace(Config(), **dict(changes))
    return config, reference(config, inputs(config, Draw(seed)))


def mean(config, found, item):
    return sum(found[f"rank{rank}/{item}"] for rank in range(config.world_size)) / config.world_size


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, [4, 4]),
        ({"world_size": 3}, [3, 3, 2]),
        ({"world_size": 1}, [8]),
        ({"shares": (5, 3)}, [5, 3]),
        ({"batch": 4, "world_size": 3}, [2, 1, 1]),
    ],
)
def test_ranks_share_the_batch(changes, counts):
    rows = rows_of(dataclasses.replace(Config(), **changes))
    assert [r.stop - r.start for r in rows] == counts
    assert [r.start for r in rows] == [sum(counts[:rank]) for rank in range(len(counts))]


def test_five_and_three_have_the_labels_and_weights_of_the_definition():
    _, found = items({"shares": (5, 3)})
    assert found["rank0/labels"].tolist() == [0, 1, 2, 3, 4]
    assert found["rank1/labels"].tolist() == [5, 6, 7]
    assert (found["rank0/weight"], found["rank1/weight"]) == (1.25, 0.75)


def test_the_factor_is_the_exponential():
    assert abs(items()[1]["whole/logit_scale"] - 14.2857) < 1e-4


@pytest.mark.parametrize("changes", SHARED, ids=str)
def test_weighted_local_losses_average_to_the_global_one(changes):
    config, found = items(changes)
    weighted = [found[f"rank{r}/weight"] * found[f"rank{r}/local/loss"] for r in range(config.world_size)]
    np.testing.assert_allclose(sum(weighted) / config.world_size, found["whole/loss"], rtol=1e-14)


@pytest.mark.parametrize("changes", SHARED, ids=str)
@pytest.mark.parametrize("route", ["global", "local"])
def test_the_mean_over_ranks_of_a_right_route_is_the_gradient_of_the_batch(changes, route):
    config, found = items(changes)
    for name in PARAMETERS:
        expected = found[f"whole/grad/{name}"]
        np.testing.assert_allclose(mean(config, found, f"{route}/grad/{name}"), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("changes", SHARED, ids=str)
def test_without_remote_gradients_a_global_loss_gives_the_world_sizeth_part(changes):
    config, found = items(changes)
    for name, share in (("w_a", config.world_size), ("w_b", config.world_size), ("log_scale", 1)):
        averaged = found[f"rank0/detached_global/averaged/{name}"]
        np.testing.assert_allclose(averaged * share, found[f"whole/grad/{name}"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("changes", SHARED, ids=str)
def test_without_remote_gradients_a_local_loss_points_elsewhere(changes):
    _, found = items(changes)
    good, bad = (
        np.concatenate([found[f"{where}/{name}"].ravel() for name in ("w_a", "w_b")])
        for where in ("whole/grad", "rank0/detached_local/averaged")
    )
    nearest = (good @ bad) / (bad @ bad) * bad  # no factor brings them together
    assert np.linalg.norm(good - nearest) / np.linalg.norm(good) >= ELSEWHERE
    assert found["rank0/detached_local/elsewhere"]


def test_a_single_rank_loses_nothing():
    _, found = items({"world_size": 1})
    for route in ("detached_global", "detached_local"):
        for name in PARAMETERS:
            np.testing.assert_allclose(found[f"rank0/{route}/averaged/{name}"], found[f"whole/grad/{name}"], rtol=1e-12)
    assert not found["rank0/detached_local/elsewhere"]


def test_samples_without_negatives_leave_the_parameters_where_they_are():
    config, found = items()
    start = inputs(config, Draw(0))
    assert all(np.all(found[f"rank0/alone/updated/{name}"] == start[name]) for name in PARAMETERS)


def test_unequal_rank_weights_add_up_at_every_rank():
    """Weights 1 and 10 and an upstream of ones: 11 everywhere; 1 and 10 where a rank keeps its own slice."""
    config = Config()
    given = inputs(config, Draw(0))
    given |= {"rank_weights": np.array([1.0, 10.0]), "upstream": np.ones_like(given["upstream"])}
    found = reference(config, given)
    assert all(np.all(found[f"rank{rank}/gather/ours/grad"] == 11) for rank in (0, 1))
