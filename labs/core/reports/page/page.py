"""report.html: the whole report as one file that needs nothing else, under 500 kB.

Pure: the report's dict and the arrays behind it to text. Made from a template that escapes all that it is given; style
and script are our own files, allowed by their hashes and nothing else is, so the page can't load, send or run a thing.
"""

import shlex
from pathlib import Path

from labs.core.reports.page.budget import LIMIT, worth_trying
from labs.core.reports.page.contents import contents
from labs.core.reports.page.stored import Source
from labs.core.reports.summary import Record
from labs.core.reports.template import policy, rendered

HERE = Path(__file__).parent
TEMPLATE = HERE / "report.html.jinja"


def page(report: Record, source: Source, where: str = "") -> str:
    """The report as an HTML page. `where` is the bundle's folder as a command would name it, if it has one.

    Where all there is would be more than LIMIT bytes, the page shows less and says so.
    """
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    own = {"style": style, "script": script, "policy": policy(style, script)}
    text = ""
    for budget in worth_trying(report):
        shown = contents(report, source, where or str(report["run"].get("bundle", "")), budget)
        text = rendered(TEMPLATE, shown=shown, join=shlex.join, **own)
        if len(text.encode()) <= LIMIT:
            break
    return text
