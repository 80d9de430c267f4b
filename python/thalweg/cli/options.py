"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo


def option(flag: str, metavar: str, text: str, *, min: float | None = None, max: float | None = None) -> OptionInfo:
    """Declare an option with a value and without a default in its help."""
    declared: OptionInfo = typer.Option(flag, metavar=metavar, help=text, show_default=False, min=min, max=max)
    return declared


File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file (TOML).", show_default=False)]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Engine: sim (simulator), kernel (this machine's TCP), uml (user-mode Linux) or vm (virtual machines).",
    ),
]
Executor = Annotated[
    str, option("--executor", "NAME", "Where to run: local, dask://HOST:PORT or slurm. [default: local]")
]
Threads = Annotated[
    int | None,
    option(
        "--threads",
        "N",
        "Experiments at a time. [default: one per core; kernel, vm: 1; on a cluster: 1 per shard]",
        min=1,
    ),
]
Overrides = Annotated[
    list[str] | None,
    option(
        "--set",
        "KEY=VALUE",
        "Override a scenario key, such as path.buffer=2bdp; a TOML list is swept; can be repeated.",
    ),
]
OverridesOfOnePoint = Annotated[
    list[str] | None,
    option("--set", "KEY=VALUE", "Override a scenario key, such as path.buffer=2bdp; can be repeated."),
]
CheckTexts = Annotated[
    list[str] | None,
    option(
        "--check",
        "BOUND",
        "Condition that must hold at every point, such as 'goodput(ours) > 0.9 * goodput(base)' for the flows ours and"
        " base; can be repeated.",
    ),
]
