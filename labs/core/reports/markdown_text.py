"""Text from anywhere as GitHub Markdown, and tables of it.

A name can't end a table cell, open a tag, mention a user or become a link.
"""

import re
from collections.abc import Iterator, Sequence

SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")  # inside a word _ is a letter
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})  # tags, mentions
COLON = re.compile(r":(?=//|[A-Za-z0-9_+-]+:)")  # links, emoji
CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def escaped(value: object) -> str:
    """`value` as Markdown text that reads as it is written, on one line."""
    text = str(value)
    if text.isalnum():
        return text
    marked = SPECIAL.sub(_marked, CONTROL.sub(" ", text)).translate(ENTITIES)
    return COLON.sub("&#58;", marked) if ":" in marked else marked


def _marked(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def code(value: object) -> str:
    """`value` as code in a table cell. HTML tags, because a backtick or a bar inside backticks can't be escaped."""
    return f"<code>{escaped(value)}</code>"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, folded: bool) -> Iterator[str]:
    """A table, in a closed fold when there is nothing to worry about in it; nothing when it has no rows."""
    if not rows:
        return
    yield from ("", f"<details><summary>{title}</summary>" if folded else f"**{title}**", "")
    yield from (f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
    if folded:
        yield from ("", "</details>")
