"""What a mistyped name most likely meant."""

from collections.abc import Iterable

LONGEST_WORD = 80  # matching costs the product of both lengths
MANY = 20  # names that a sentence can hold


def nearest(word: str, known: Iterable[str]) -> str:
    """End of a sentence: the nearest known name, or all of them when none is near and they are few; else empty."""
    from difflib import get_close_matches  # noqa: PLC0415  only an error pays for it

    names = list(known)
    close = get_close_matches(word[:LONGEST_WORD], names, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if 0 < len(names) <= MANY else ""
