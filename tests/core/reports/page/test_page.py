import base64
import hashlib
import re

import pytest

from labs.core.reports.page import page as module
from labs.core.reports.page.page import page
from labs.core.reports.page.stored import stored
from tests.cli.samples import reports

NOTHING = stored(None)


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"(?:<[^>]*>)+", " ", html.split("<body>")[1].split("<script>")[0]))


@pytest.mark.parametrize(
    "fact",
    [
        "Failed", "forward/gated", "checks failed · 1 of 1 known faults caught",
        "lab run", "out of tolerance", "worst elements", "torch 2.13.0", "Trajectories", "The walk from the loss",
    ],
)  # fmt: skip
def test_a_red_page_says(red, fact):
    assert fact in text_of(red)


@pytest.fixture(scope="module")
def red(made, spoiled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("red")
    return page(made(folder, **spoiled), stored(folder), "artifacts/here")


def test_failures_come_before_everything_else(red):
    text = text_of(red)
    assert text.index("worst elements") < text.index("Checks") < text.index("Known faults")


def test_the_band_says_which_known_fault_it_is():
    check = reports.over("a", 3.0, diagnosis="the torch side equals alpha_without_rank")
    text = text_of(page(reports.report(reports.lab(status="failed", checks=[check])), NOTHING))
    assert "lora: the torch side equals alpha_without_rank: the scale is alpha, not alpha/r" in text


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (reports.over("a", 16.0), "not equal"),
        (reports.missing("a"), "nothing could be compared"),
        (
            reports.over("a", 3.0),
            "3.0 decades over a in lora is the worst: its largest error is 1000 times beyond",
        ),
        (
            reports.check("a"),
            "7.4 decades left a in lora came closest to its limit: its largest error is 25 million times",
        ),
        (reports.check("a", headroom=16.0), "every value is equal"),
    ],
)
def test_the_band_says_how_far_from_the_limit(check, words):
    lab = reports.lab(status=check["status"], checks=[check])
    assert words in text_of(page(reports.report(lab), NOTHING))


def test_the_command_to_repeat_names_the_bundle(red):
    assert "lab run artifacts/here/block/config.yaml" in text_of(red)


def test_the_same_bundle_makes_the_same_page(made, tmp_path):
    report = made(tmp_path)
    assert page(report, stored(tmp_path)) == page(report, stored(tmp_path))


def test_style_and_script_are_allowed_by_their_hashes_and_nothing_else_is(red):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', red)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", red, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_in_it_is_loaded_from_elsewhere(red):
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]*|url\(|@import|https?:", red) == []


def test_no_style_stands_in_an_attribute(red):
    assert not re.search(r"<[^>]* (style|on\w+)=", red)


def test_ids_are_unique_and_every_link_has_its_target(red):
    ids = re.findall(r' id="([^"]*)"', red)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', red)) <= set(ids)


def test_without_arrays_the_page_says_what_is_not_there(made, tmp_path):
    text = text_of(page(made(tmp_path), NOTHING))
    assert "Not here: train/loss, train/param/gamma_1, " in text
    assert "Not here: the bundle does not hold it" in text


def test_a_failure_without_arrays_has_what_the_report_has():
    text = text_of(page(reports.red(), NOTHING))
    assert "worst element at reference observed difference limit" in text
    assert "No map of the errors: the bundle does not hold it" in text


def test_a_damaged_array_is_a_sentence_on_the_page(made, spoiled, tmp_path):
    report = made(tmp_path, **spoiled)
    (tmp_path / "block/observed/forward/gated.npy").write_bytes(b"nonsense")
    (tmp_path / "block/reference/train/loss.npy").unlink()
    (tmp_path / "block/reference/train/loss.npy").symlink_to("/etc/passwd")
    text = text_of(page(report, stored(tmp_path)))
    assert "damaged: block/observed/forward/gated.npy: not a .npy file" in text
    assert "damaged: block/reference/train/loss.npy: a link" in text


def many(checks, failed, controls=200, configs=1):
    rows = [reports.check(f"group{i % 9}/some/long/name/of/an/item_{i}") for i in range(checks)]
    rows += [reports.over(f"wrong/item_{i}", 3.0, diagnosis="equals something known " * 5) for i in range(failed)]
    faults = [reports.control(f"fault_{i}", why="a reason of some length " * 4) for i in range(controls)]
    return [reports.lab(f"lab{n}", status="failed", checks=rows, controls=faults) for n in range(configs)]


@pytest.mark.parametrize(
    "labs",
    [many(5000, 0), many(0, 3000), many(300, 300, configs=9), many(50, 50, configs=60), many(9, 9, configs=500)],
    ids=["many checks", "many failures", "many configs", "more configs", "too many configs"],
)
def test_a_page_is_never_too_large_and_says_what_it_leaves_out(labs):
    html = page(reports.report(*labs), NOTHING)
    assert len(html.encode()) < 500_000
    assert "Not shown, to keep the page small" in html


def test_a_long_traceback_is_cut_when_there_is_no_room():
    lab = reports.lab(status="failed", failures=["stage x raised\n" + "line\n" * 200_000])
    assert len(page(reports.report(lab), NOTHING).encode()) < 500_000


def test_the_engine_escapes_by_default_and_knows_no_exception_but_our_own_files():
    template = (module.HERE / "report.html.jinja").read_text(encoding="utf-8")
    assert re.findall(r"([\w.]+)\s*\|\s*safe", template) == ["style", "script"]
    assert "autoescape false" not in template


def test_what_turns_the_reading_direction_is_made_visible():
    html = page(reports.report(reports.lab(title="a\u202eb\u2066c\x1bd")), NOTHING)
    assert "a\ufffdb\ufffdc\ufffdd" in html


def test_a_lone_surrogate_can_be_written():
    page(reports.report(reports.lab(title="a\ud800b")), NOTHING).encode()


def test_what_became_of_the_baseline_is_told_first():
    html = page(
        reports.since(reports.change(), reports.change("gone", **{"class": "removed"}), cause="MKL differs"), NOTHING
    )
    text = text_of(html)
    assert text.index("2 regressions since 20261101T000000Z") < text.index("Since the baseline") < text.index("Checks")
    assert "MKL differs" in text
    assert "trained/grad/x in lora came closest to its limit" in text
    assert '<a href="#lora/trained/output">trained/output (close)</a>' in html
    assert "no regression since 20261101T000000Z" in text_of(page(reports.since(), NOTHING))


def test_swapped_parts_are_named():
    swap = {
        "part": "linear",
        "source": "mine.py:fused",
        "file": "",
        "sha256": "ab" * 32,
        "line": 3,
        "libraries": ["x 1"],
    }
    text = text_of(page(reports.report(reports.lab(swaps=[swap])), NOTHING))
    assert re.search(r"linear +is +mine.py:fused *, line 3, with x 1, sha256 +abababababababab", text)
