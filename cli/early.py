"""The framework process of `lab run`, started before the command line is understood.

Importing torch there takes most of a run, so it begins before Typer is imported here (a twentieth of a run of `lora`).
Whatever is found out later (a usage error, another interpreter) closes it again. Imports next to nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is among the things that are slow to import
if TYPE_CHECKING:
    from labs.core.launch import Framework


class Early:
    """At most one framework process; `framework` hands it out, `close` ends it and removes its scratch folder."""

    def __init__(self, words: list[str]) -> None:
        self._framework: Framework | None = None
        self._python: str | None = None
        self._scratch = ""
        if words[:1] == ["run"] and not {"-h", "--help"} & set(words) and "_LAB_COMPLETE" not in os.environ:
            self._python = asked(words, "--python")
            try:
                self._start()
            except Exception:  # noqa: BLE001 - `framework` starts it again, and then its error is in order
                self.close()

    def framework(self, python: str | None) -> Framework:
        """The process of this interpreter (None: the one that runs us). Raises CannotComplete."""
        if self._framework is not None and python == self._python:
            return self._framework
        self.close()
        self._python = python
        return self._start()

    def close(self) -> None:
        """End the process, however far it is; safe to call twice."""
        framework, self._framework = self._framework, None
        if framework is not None:
            framework.close()
        if self._scratch:
            from shutil import rmtree

            rmtree(self._scratch, ignore_errors=True)
            self._scratch = ""

    def _start(self) -> Framework:
        from labs.core.launch import Framework

        self._scratch = _folder()
        framework = Framework(self._python, self._scratch)
        framework.__enter__()
        self._framework = framework
        return framework


def asked(words: list[str], option: str) -> str | None:
    """What an option like `--python` says, read without Typer: the last one wins, as there."""
    own = words[: words.index("--")] if "--" in words else words
    found = None
    for at, word in enumerate(own):
        if word.startswith(f"{option}="):
            found = word[len(option) + 1 :]
        elif word == option and at + 1 < len(own):
            found = own[at + 1]
    return found


def _folder() -> str:
    """A new folder for temporary files, made without importing tempfile where that is easy."""
    path = f"{os.environ.get('TMPDIR') or '/tmp'}/framework-lab-{os.getpid()}-{os.urandom(4).hex()}"  # noqa: S108
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102 - pathlib is slow to import
    except OSError:
        from tempfile import mkdtemp

        return mkdtemp(prefix="framework-lab-")
    return path
