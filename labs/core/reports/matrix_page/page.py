"""A matrix as one HTML file that needs nothing else: no script, no network, readable on paper and in the dark.

Pure: the document to text. The template escapes all that it is given; the only style allowed is our own, by its hash.
"""

from pathlib import Path
from typing import Any

from labs.core.reports import matrix_summary as words
from labs.core.reports.diff_summary import setting_value
from labs.core.reports.summary import Record, count
from labs.core.reports.template import policy, rendered

HERE = Path(__file__).parent
MOST = 2000  # items of a config; the JSON form has them all


def page(matrix: Record) -> str:
    """The matrix as an HTML page."""
    style = (HERE / "matrix.css").read_text(encoding="utf-8")
    own = {"style": style, "policy": policy(style), "words": words, "count": count, "short": setting_value}
    configs = [_config(config) for config in matrix["configs"]]
    return rendered(HERE / "matrix.html.jinja", matrix=matrix, configs=configs, **own)


def _config(config: Record) -> dict[str, Any]:
    """Items that move with a cell for each variant; of the others the headroom alone, which is the same in all."""
    moving = words.moving(config)
    names = {item["name"] for item in moving}
    calm = [item for item in config["items"] if item["name"] not in names]
    return {
        "name": config["name"],
        "moving": [{"name": i["name"], "cells": [_cell(cell) for cell in i["cells"]]} for i in moving[:MOST]],
        "calm": [{"name": i["name"], "decades": max(words.decades(cell) for cell in i["cells"])} for i in calm[:MOST]],
        "counts": (len(moving), len(calm), len(config["items"])),
    }


def _cell(cell: Record) -> dict[str, Any]:
    """What a cell shows: its class in words and as a colour, how far, what is left."""
    kind = cell["class"] if cell["class"] in words.MARKS else ""
    return {
        "style": "failed" if cell["failed"] else kind or "none",
        "name": "failed" if cell["failed"] and not kind else kind,
        "ulp": words.distance(cell),
        "decades": words.decades(cell),
    }
