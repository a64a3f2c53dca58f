"""Options that several commands have with the same words; a default stands where it is used."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.list import complete_config
from cli.output import Format

FailOn = Literal["regression", "drift", "any", "never"]

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="A shipped config, a YAML file or a lab folder; none: the default config of every lab.",
        autocompletion=complete_config,
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a config value (steps=3); repeatable."),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the inputs, instead of the config's.")]
FailOnOption = Annotated[FailOn, typer.Option(help="What the exit code takes for a no.")]
View = Annotated[Format, typer.Option("--format", help="What stdout carries.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write what stdout carries to a file as well.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="The verdict alone, no progress.")]
Bundle = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder of a run.", show_default=False)]
