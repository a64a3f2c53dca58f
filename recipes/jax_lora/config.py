"""The lora lab's config."""

from labs.lora.config import Config

__all__ = ["Config"]
