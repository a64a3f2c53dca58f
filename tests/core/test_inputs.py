import hashlib

import numpy as np
import pytest

from labs.core.inputs import PIECE, Draw

DRAWS = {  # of seed 7, drawn before they were drawn in pieces
    "uniform": (lambda draw: draw.uniform("w", (3, 8191), -2.0, 5.0), "c59c2153f7bad563"),
    "one piece": (lambda draw: draw.uniform("u", (8192,)), "bf936e1e78860cc2"),
    "normal": (lambda draw: draw.normal("x", (9, 1000), 0.5), "28724d46bb96f1d9"),
    "integers": (lambda draw: draw.integers("i", (20000,), 77), "5f2c54c5291fc494"),
    "permutation": (lambda draw: draw.permutation("p", 9000), "3a71a07aba0ff052"),
    "a number": (lambda draw: draw.uniform("s", ()), "5f0fbc8d6007288e"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_seed_and_name_give_the_same_bits_for_ever(name):
    drawn, expected = DRAWS[name]
    assert hashlib.sha256(drawn(Draw(7)).tobytes()).hexdigest().startswith(expected)


def test_pieces_are_one_stream():
    digest = int.from_bytes(hashlib.sha256(b"7:w").digest(), "little")
    raw = np.random.PCG64(digest).random_raw(2 * PIECE + 3)
    np.testing.assert_array_equal(Draw(7).uniform("w", (2 * PIECE + 3,)), (raw >> np.uint64(11)) * 2.0**-53)


def test_another_name_or_seed_gives_other_numbers():
    assert not np.array_equal(Draw(7).uniform("w", (4,)), Draw(7).uniform("v", (4,)))
    assert not np.array_equal(Draw(7).uniform("w", (4,)), Draw(8).uniform("w", (4,)))


def test_nothing_is_drawn_for_an_empty_shape():
    assert Draw(7).uniform("w", (0, 3)).shape == (0, 3)
