"""What can be set in the rules lab. The numbers themselves are in table.py and are not for setting."""

from dataclasses import dataclass

from labs.core.setting import setting


@dataclass(frozen=True)
class Config:
    """Which part of the table is computed."""

    rows: str = setting("*", "rows to compute, as a name pattern: adam_* or mask_leak")
