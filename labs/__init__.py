"""The labs that ship with framework-lab; nothing is imported until a lab is asked for.

The framework process registers this package by its folder, so this file imports the standard library only.
"""

NAMES = ("lora", "block", "packing", "contrastive", "rules")
