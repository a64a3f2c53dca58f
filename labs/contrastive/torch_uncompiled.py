"""DistributedDataParallel without an import of the compiler, which takes nearly as long as importing torch.

Its constructor asks torch._dynamo which of its modes is configured, its first forward pass asks for a function that is
not to be compiled. Where nothing is compiled the answers are known, and a stand-in gives them. Whoever asks it anything
else gets the real module from then on.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

NAME = "torch._dynamo"
MODE = "ddp_optimizer"  # what the compiler is configured to by default


class _StandIn(ModuleType):
    """Answers the two questions; any other attribute imports the real module."""

    utils = SimpleNamespace(get_optimize_ddp_mode=lambda: MODE)

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


@contextmanager
def uncompiled() -> Iterator[None]:
    """Within the block torch._dynamo is a stand-in, unless it has been imported already."""
    stand_in = sys.modules.setdefault(NAME, _StandIn(NAME))
    try:
        yield
    finally:
        if isinstance(stand_in, _StandIn) and sys.modules.get(NAME) is stand_in:
            del sys.modules[NAME]
