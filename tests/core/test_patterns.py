import pytest

from labs.core.patterns import matches, overlap, picks


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("init/*", "trained/*", False),
        ("*/grad/*", "trained/*", True),
        ("resume/*", "*", True),
        ("a*b", "acb", True),
        ("a*c", "ab", False),
        ("init/?", "init/ab", False),
        ("init/?", "init/a", True),
        ("**", "", True),
        ("", "a", False),
        ("*a*b*", "xaybz", True),
        ("*b*a*", "ab", False),
        ("rank[01]/loss", "rank2/loss", True),  # a set is not analysed: it may match
    ],
)
def test_two_patterns_overlap_when_some_name_matches_both(a, b, expected):
    assert overlap(a, b) is expected
    assert overlap(b, a) is expected


@pytest.mark.parametrize("pattern", ["rank0/loss", "rank?/loss", "rank[01]/loss", "*0/loss"])
def test_every_special_character_of_a_pattern_counts_beside_plain_names(pattern):
    assert matches("rank0/loss", [pattern, "plain"])
    assert matches("plain", [pattern, "plain"])
    assert not matches(f"{pattern}s", [pattern, "plain"])


def test_a_name_matches_whole_or_not_at_all():
    assert matches("trained/grad/lora_a", ["trained/*"])
    assert not matches("trained/grad/lora_a", ["trained"])
    assert not matches("trained/grad/lora_a", [])


def test_a_check_is_picked_by_its_item_or_with_its_kind():
    assert picks("init/output", "identical", ["init/*"])
    assert picks("init/output", "identical", ["init/output:identical"])
    assert not picks("init/output", "close", ["*:identical"])
