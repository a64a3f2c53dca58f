"""The page in a real browser: it is seen, stepped through, filtered, printed, and it does nothing else."""

import re

import pytest

from labs.core.reports.anchors import anchor
from labs.core.reports.page.page import page
from labs.core.reports.page.stored import stored
from tests.cli.samples import reports

HOSTILE = "<script>hacked=1</script>\"'><img src=x onerror=hacked=1>{{7*7}}</style>&amp;\u202egnitset\x00"
LONG = "long/" + "x" * 3000
VISIBLE = "[...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).length"


def hostile():
    checks = [
        {**reports.over(HOSTILE, 1.0, diagnosis=HOSTILE), "message": HOSTILE},
        reports.over(LONG, 2.0),
        reports.check(),
    ]
    checks.append(reports.check(f"{HOSTILE}/passed", kind=HOSTILE, other=HOSTILE))
    lab = reports.lab(
        status="failed", title=HOSTILE, checks=checks, failures=[f"{HOSTILE}\n{HOSTILE}"],
        controls=[reports.control(HOSTILE, why=HOSTILE, status="missed")],
        facts=[{"name": HOSTILE, "what": HOSTILE, "value": HOSTILE}],
        tables=[{"title": HOSTILE, "header": [HOSTILE], "rows": [[HOSTILE]]}],
        loosened=[{"pattern": HOSTILE, "atol": 1e-3, "rtol": 1e-3, "reason": HOSTILE}],
        walk=[{"name": HOSTILE, "value": HOSTILE, "gradient": "", "forward": HOSTILE, "backward": "", "read_by": []}],
    )  # fmt: skip
    report = reports.report(lab, command=["lab", "run", HOSTILE])
    report["environment"] = {"referee": {HOSTILE: HOSTILE}, "framework": {"torch": HOSTILE}}
    return report


@pytest.fixture(scope="module")
def urls(made, spoiled, tmp_path_factory):
    """The pages by name."""
    folder = tmp_path_factory.mktemp("pages")
    green, red = made(folder / "green"), made(folder / "red", **spoiled)
    pages = {
        "green": page(green, stored(folder / "green")),
        "red": page(red, stored(folder / "red")),
        "hostile": page(hostile(), stored(None)),
        "no verdict": page({"run": {"status": "error", "sentence": "no torch"}, "labs": []}, stored(None)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.mark.parametrize("name", ["green", "red", "hostile", "no verdict"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_it_loads_without_a_console_message_a_request_or_a_sideways_scroll(browser, urls, name, width, scheme):
    browser.look(width, 800, scheme)
    browser.open(urls[name])
    assert browser.ask("document.documentElement.classList.contains('on')")
    assert browser.log("browser") == []
    assert browser.requests() == [urls[name]]
    assert browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_the_page_says_what_the_report_says(browser, urls):
    browser.look()
    browser.open(urls["red"])
    assert browser.ask("document.querySelector('h1').innerText") == "Failed"
    assert browser.ask(VISIBLE, ".card") == 2
    assert browser.ask(VISIBLE, ".card .heat path") == 5
    assert browser.ask("document.querySelector('.checks tbody').classList.contains('bad')")


def test_dark_is_dark_and_light_is_light(browser, urls):
    shades = []
    for scheme in ("light", "dark"):
        browser.look(scheme=scheme)
        browser.open(urls["green"])
        red, green, blue = re.findall(r"\d+", browser.ask("getComputedStyle(document.body).backgroundColor"))[:3]
        shades.append(int(red) + int(green) + int(blue))
    assert shades[0] > 700
    assert shades[1] < 150


def at(browser):
    return browser.ask("[...document.querySelectorAll('.stop')].filter((e) => e.checkVisibility()).map((e) => e.id)")


def test_buttons_step_through_the_walk(browser, urls):
    browser.look()
    browser.open(urls["green"])
    assert at(browser) == ["block::loss"]
    browser.click(".next")
    browser.click(".next")
    assert at(browser) == ["block::logits"]
    browser.click(".prev")
    assert at(browser) == ["block::mean_loss"]
    assert browser.ask("document.querySelector('.pager output').value") == "2 of 31: mean_loss"
    assert browser.ask("document.querySelector('.graph [aria-current]').textContent") == "mean_loss"


def test_arrow_keys_step_through_the_walk_and_stop_at_its_ends(browser, urls):
    browser.look()
    browser.open(urls["green"] + "#block:::walk")
    browser.press("ArrowLeft")
    assert at(browser) == ["block::loss"]
    browser.press(*["ArrowRight"] * 4)
    assert at(browser) == ["block::residual_2"]
    browser.press(*["ArrowRight"] * 40)
    assert at(browser) == ["block::x"]
    assert browser.ask("document.querySelector('.next').disabled")


def test_arrow_keys_are_left_alone_where_no_walk_is_in_view(browser, urls):
    browser.look()
    browser.open(urls["green"])
    browser.press("ArrowRight")
    assert at(browser) == ["block::loss"]


def test_a_click_into_the_drawing_goes_there(browser, urls):
    browser.look()
    browser.open(urls["green"] + "#block:::walk")
    browser.click(".graph a[href='#block::scores']")
    assert at(browser) == ["block::scores"]
    browser.click(".stop.here .way a")
    assert at(browser) == ["block::probs"]


def test_the_filter_shows_what_has_every_word(browser, urls):
    browser.look()
    browser.open(urls["green"])
    browser.press("/")
    browser.press(*"grad w_q")
    assert browser.ask(VISIBLE, ".checks tbody tr:not(.group)") == 2
    assert browser.ask("document.getElementById('hits').value").startswith("2 of ")
    browser.press("Escape")
    assert browser.ask(VISIBLE, ".checks tbody tr:not(.group)") > 100


def test_failed_only_leaves_the_failed(browser, urls):
    browser.look()
    browser.open(urls["red"])
    browser.click("#only")
    assert browser.ask(VISIBLE, ".checks tbody tr:not(.group)") == 2
    assert browser.ask(VISIBLE, ".card") == 2


def test_a_link_to_an_item_arrives_there_through_folds_and_filters(browser, urls):
    browser.look()
    name = anchor({"name": "block"}, "train/param/w_down")
    browser.open(f"{urls['green']}#{name}")
    box = "const box = document.getElementById(name).getBoundingClientRect();"
    inside = "return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;"
    seen = f"((name) => {{ {box} {inside} }})(arguments[0])"
    assert browser.ask(seen, name)
    browser.press("/")
    browser.press(*"nothing")
    browser.ask("location.hash = '#block/grad/x'")
    assert browser.ask(seen, "block/grad/x")


def test_a_hostile_name_is_text(browser, urls):
    browser.look()
    browser.open(urls["hostile"])
    assert browser.ask("typeof hacked") == "undefined"
    assert browser.ask("document.querySelectorAll('img, main script, iframe').length") == 0
    shown = HOSTILE.replace("\u202e", "\ufffd").replace("\x00", "\ufffd")
    assert shown in browser.ask("Array.from(document.querySelectorAll('.card h3'), h => h.textContent).join()")


def test_what_a_hostile_name_would_run_is_refused_by_the_policy(browser, urls):
    """The second line of defence: the policy alone would have held."""
    browser.look()
    browser.open(urls["green"])
    browser.ask("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=hacked=1><b style=color:red>b</b>')")
    browser.ask("document.body.append(Object.assign(document.createElement('script'), {text: 'hacked = 1'}))")
    assert browser.ask("typeof hacked") == "undefined"
    said = " ".join(entry["message"] for entry in browser.log("browser"))
    assert all(word in said for word in ("img-src", "script-src", "style-src"))


def test_all_of_it_is_there_without_a_script(browser, urls):
    browser.look()
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(urls["green"])
        assert browser.ask(VISIBLE, ".stop") == 31
        assert browser.ask(VISIBLE, ".checks tbody tr") > 100
        assert browser.ask(VISIBLE, ".js") == 0
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)


def test_paper_shows_every_node_and_no_controls(browser, urls):
    browser.look(media="print")
    browser.open(urls["green"])
    assert browser.ask(VISIBLE, ".stop") == 31
    assert browser.ask(VISIBLE, ".filter, button, .graph") == 0


def test_everything_that_acts_is_reached_by_the_tab_key(browser, urls):
    browser.look()
    browser.open(urls["red"])
    met = set()
    for _ in range(60):
        browser.press("Tab")
        met.add(browser.ask("document.activeElement.id || String(document.activeElement.getAttribute('class'))"))
    assert {"skip", "copy js", "q", "only"} <= met
