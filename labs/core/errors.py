"""The errors a user can meet: each is one sentence, and the class says which exit code it becomes."""


class RequestError(Exception):
    """The request was wrong: usage, config or a file (exit code 2)."""


class CannotComplete(Exception):
    """The run could not be completed: no torch, a crash, a time-out, no disk (exit code 3)."""


class NothingCompared(Exception):
    """A pattern matched nothing, so there is no verdict (exit code 5)."""
