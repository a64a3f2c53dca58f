"""Known faults: the wrong number of every row of the table has to be told from the right one.

A control runs the theme of its row alone: the whole table for each row of it would be six times the work.
"""

from labs.core.lab import Control

from .table import THEMES

CONTROLS = tuple(
    Control(
        name=row.name,
        why=f"{row.source}: {row.fault}",
        swap={row.name: row.name},
        at={"theme": theme},
        must=(f"{row.name}/torch",),
    )
    for theme, rows in THEMES.items()
    for row in rows
)
