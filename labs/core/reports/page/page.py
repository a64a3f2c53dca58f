"""report.html: the whole report as one file that needs nothing else, under 500 kB.

Pure: the report's dict and the arrays behind it to text. Made from a template that escapes all that it is given; style
and script are our own files, allowed by their hashes and nothing else is, so the page can't load, send or run a thing.
"""

import base64
import hashlib
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from labs.core.reports.page.budget import LIMIT, worth_trying
from labs.core.reports.page.contents import contents
from labs.core.reports.page.stored import Source
from labs.core.reports.summary import Record

HERE = Path(__file__).parent
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class Assets(NamedTuple):
    """Our own style and script, and the policy that allows these two."""

    style: str
    script: str
    policy: str


def page(report: Record, source: Source, where: str = "") -> str:
    """The report as an HTML page. `where` is the bundle's folder as a command would name it, if it has one.

    Where all there is would be more than LIMIT bytes, the page shows less and says so.
    """
    text = ""
    for budget in worth_trying(report):
        shown = contents(report, source, where or str(report["run"].get("bundle", "")), budget)
        text = _template().render(shown=shown, assets=_assets(), join=shlex.join)
        if len(text.encode(errors="replace")) <= LIMIT:
            break
    return text.encode(errors="replace").decode()  # a lone surrogate could not be written


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja")


def _visible(value: Any) -> Any:
    """What the template prints: control characters, and those that turn the reading direction, become visible."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else _UNSEEN.sub("\ufffd", value)


@cache
def _assets() -> Assets:
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return Assets(style, script, f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
