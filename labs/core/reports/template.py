"""HTML from a template: everything is escaped, nothing can be loaded, and what can't be seen is made visible."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, UndefinedError
from markupsafe import Markup

# control characters, what turns the reading direction, what has no width
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def rendered(template: Path, **values: Any) -> str:
    """The text of a template with these values in it, of characters that can be written as UTF-8.

    Raises KeyError for a value that the template asks for and that is not there.
    """
    try:
        text: str = _template(template).render(**values)
    except UndefinedError as error:
        raise KeyError(str(error)) from error
    return text.encode(errors="replace").decode()  # a lone surrogate could not be written


def policy(style: str, script: str = "") -> str:
    """The Content-Security-Policy of a page that has this style and this script, by their hashes, and nothing else."""
    scripts = f" script-src '{_hash(script)}';" if script else ""
    return f"default-src 'none'; style-src '{_hash(style)}';{scripts} base-uri 'none'; form-action 'none'"


@cache
def _template(path: Path) -> Template:
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path.name)


def _visible(value: Any) -> Any:
    """What a template prints, without characters that hide or move others."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else _UNSEEN.sub("\ufffd", value)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
