"""The block lab's config."""

from labs.block.config import Config

__all__ = ["Config"]
