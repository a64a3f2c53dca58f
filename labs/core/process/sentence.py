"""An exception in one printable sentence: its first line, and what helps of those below. Python 3.10 syntax.

Libraries put the reason on a second line ("Tensor-likes are not close!", then how far), or last, behind a traceback of
their own; what comes with it (code, frames) is left to the log.
"""

import re

LONGEST = 300  # characters of what an exception says, its name not counted
_NOISE = re.compile(r'File "|Traceback|frame #|from user code|Exception raised from|-{9}|={9}|\^|~+[ ^]')
_REASON = re.compile(r"([A-Za-z_][\w.]*(Error|Exception)|Original error was): \S")


def sentence(error: BaseException, *, named: bool = True) -> str:
    """What an exception says, behind its name where that is wanted. Never raises."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__
        text = "(its text can't be printed)"
    said = shortened(text)
    if not named:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shortened(text: str) -> str:
    """The lines of a text that help, as one line of at most LONGEST characters."""
    lines = [line for raw in text[: 100 * LONGEST].splitlines() if (line := _plain(raw))]
    kept = lines[:1]
    for line in lines[1:]:
        if _NOISE.match(line):
            break
        kept.append(line)
    if len(kept) < len(lines) and (reasons := [line for line in lines[len(kept) :] if _REASON.match(line)]):
        kept = [kept[0], reasons[-1]]
    return _cut(_joined(kept))


def _plain(line: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(line.split()))


def _joined(lines: list[str]) -> str:
    """One line: a line that ends without a stop gets a semicolon before the next one."""
    text = ""
    for line in lines:
        text += ("" if not text else " " if text[-1] in ".,:;!?([{" else "; ") + line
    return text


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"
