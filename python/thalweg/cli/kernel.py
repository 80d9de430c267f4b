"""`thalweg kernel`: builds the kernels of the engine with virtual time, and says which one it takes."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli import output
from thalweg.cli.options import option
from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.kernel import Kernel

EPILOG = "Example: thalweg kernel build"

commands = typer.Typer(
    help="Build and choose the Linux kernel that runs in virtual time.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Kernel, as `thalweg kernel list` names it.", show_default=False)
]


@commands.command("build", epilog="Example: thalweg kernel build --source ~/src/linux")
def build(
    source: Annotated[
        Path | None, option("--source", "DIR", "A kernel's source tree. [default: the distribution's source package]")
    ] = None,
    config: Annotated[Path | None, option("--config", "FILE", "Kconfig options to add, one a line.")] = None,
    jobs: Annotated[int | None, option("--jobs", "N", "Compilers at a time. [default: one per core]", min=1)] = None,
    force: Annotated[bool, typer.Option("--force", help="Build it again although it is there.")] = False,
    as_json: Json = False,
) -> None:
    """Build a user-mode Linux kernel, once, and use it from now on.

    Needs no root: apt fetches the distribution's kernel source, gcc builds it, and the result stays in
    ~/.cache/thalweg. What is there already is not built again. A source tree of your own may be any Linux from 6.1 on;
    it is only read, never written.
    """
    from thalweg.kernel import Order, Progress
    from thalweg.kernel import build as build_kernel

    try:
        with Progress(output.console()) as progress:
            result = build_kernel(Order(source, config, jobs, force), progress)
    except KeyboardInterrupt:
        output.talk("interrupted: nothing is left of the build; the same command begins it again")
        raise typer.Exit(Exit.INTERRUPTED) from None
    for note in result.notes:
        output.talk(f"note: {note}")
    if as_json:
        output.data_json(_json(result.kernel))
        return
    what = "built" if result.is_new else "there already"
    output.data(f"{what}: Linux {result.kernel.release}, {result.kernel.folder}")
    _warn_of_variable()


@commands.command("list", epilog="Example: thalweg kernel list")
def list_(as_json: Json = False) -> None:
    """List the kernels that were built, the newest first."""
    from thalweg.kernel import current, kernels

    known, used = kernels(), current()
    if as_json:
        output.data_json({"kernels": [_json(kernel) | {"current": kernel == used} for kernel in known]})
    elif not known:
        output.talk("no kernel is built; to build one: thalweg kernel build")
    else:
        rows = [["used" if kernel == used else "", kernel.name, kernel.built, kernel.source] for kernel in known]
        output.data(output.table(["", "name", "built", "source"], rows))
    _warn_of_variable()


@commands.command("use", epilog="Example: thalweg kernel use 6.1.192-0a1b2c3d4e5f")
def use(name: Name) -> None:
    """Use another kernel from now on."""
    from thalweg.kernel import named
    from thalweg.kernel import use as use_kernel

    kernel = named(name)
    use_kernel(kernel)
    output.talk(f"used from now on: Linux {kernel.release}, {kernel.folder}")
    _warn_of_variable()


@commands.command("remove", epilog="Example: thalweg kernel remove 6.1.192-0a1b2c3d4e5f")
def remove(name: Name) -> None:
    """Remove a kernel."""
    from thalweg.kernel import current, named
    from thalweg.kernel import remove as remove_kernel

    kernel = named(name)
    remove_kernel(kernel)
    output.talk(f"removed: {kernel.folder}")
    if current() is None:
        output.talk("no kernel is used now: thalweg kernel use NAME, or thalweg kernel build")


def _json(kernel: "Kernel") -> dict[str, Any]:
    return asdict(kernel) | {"name": kernel.name, "folder": str(kernel.folder)}


def _warn_of_variable() -> None:
    """Say that the environment names another kernel, which goes first."""
    from thalweg.kernel import VARIABLE

    if os.environ.get(VARIABLE):
        output.talk(f"note: {VARIABLE} is set, and names the kernel that runs: {os.environ[VARIABLE]}")
