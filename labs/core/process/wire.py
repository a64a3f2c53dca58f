"""JSON lines over a descriptor. Standard library only, Python 3.10 syntax: both sides use it."""

import json
from collections.abc import Iterator
from typing import Any

LONGEST = 64 << 20  # bytes of one line; whoever writes more than this without a line end is not speaking JSON lines


class UnreadableError(Exception):
    """The other side wrote something that is not a JSON object on a line of its own."""


def pack(message: dict[str, Any]) -> bytes:
    """One message as a line; ASCII only, so any text (also undecodable file names) survives."""
    return json.dumps(message).encode("ascii") + b"\n"


class Lines:
    """Collects bytes and hands out whole messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that `data` completes. Raises UnreadableError."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = bytes(self._rest) + line
            self._rest.clear()
            yield _unpack(whole)
        self._rest += rest
        if len(self._rest) > LONGEST:
            raise UnreadableError("a line without an end")


def _unpack(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(repr(line[:80])) from error
    if not isinstance(message, dict):
        raise UnreadableError(repr(line[:80]))
    return message
