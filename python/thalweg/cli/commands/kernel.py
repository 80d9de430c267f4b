"""`thalweg kernel`: builds kernels for virtual time, fetches kernels for guests, and selects the default ones."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli import helped
from thalweg.cli.options import option
from thalweg.cli.printing import output
from thalweg.errors import Exit, ThalwegError

if TYPE_CHECKING:
    from thalweg.kernel import GuestKernel, Kernel

EPILOG = "Example: thalweg kernel build"

commands = typer.Typer(
    help="Build, fetch and select Linux kernels for the engines uml and vm.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the kernel, from `thalweg kernel list`.", show_default=False)
]


@commands.command("build", cls=helped.Command, epilog="Example: thalweg kernel build --source ~/src/linux")
def build(
    source: Annotated[
        Path | None, option("--source", "DIR", "A kernel's source tree. [default: the distribution's source package]")
    ] = None,
    suite: Annotated[
        str | None,
        option("--suite", "NAME", "Suite of the distribution from which the source package is fetched, such as sid."),
    ] = None,
    config: Annotated[Path | None, option("--config", "FILE", "Kconfig options to add, one per line.")] = None,
    jobs: Annotated[
        int | None, option("--jobs", "N", "Compiler processes at a time. [default: one per core]", min=1)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build it again even if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Build a user-mode Linux kernel as the default of the engine uml.

    Needs no root: apt fetches the distribution's kernel source, gcc builds it, and the result stays in
    ~/.cache/thalweg, or $XDG_CACHE_HOME/thalweg. A kernel that exists is not built again. A source tree of your own
    must be Linux 6.1 or later, neither configured nor built in place; it is only read, never written.
    """
    from thalweg.kernel import KernelProgress, Order
    from thalweg.kernel import build as build_kernel

    if source and suite:
        raise ThalwegError(
            "source-and-suite",
            "`--suite` selects a source package, and `--source` a source tree",
            place="--suite",
            hint="remove one of the two options",
            exit_code=Exit.USAGE,
        )
    try:
        with KernelProgress(output.console()) as progress:
            result = build_kernel(Order(source, suite, config, jobs, force), progress)
    except KeyboardInterrupt:
        output.talk("interrupted: the build was removed; the same command starts it again")
        raise typer.Exit(Exit.INTERRUPTED) from None
    for note in result.notes:
        output.talk(f"note: {note}")
    _show(result.kernel, "built" if result.is_new else "already there", as_json=as_json)


@commands.command("fetch", cls=helped.Command, epilog="Example: thalweg kernel fetch linux-image-amd64")
def fetch(
    package: Annotated[
        str | None,
        typer.Argument(
            metavar="PACKAGE", help="Debian package. [default: linux-image-cloud-amd64]", show_default=False
        ),
    ] = None,
    suite: Annotated[
        str | None, option("--suite", "NAME", "Another suite of the distribution, such as bookworm-backports.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch it again even if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch a distribution's kernel as the default of the engine vm.

    Needs no root, and installs nothing: apt fetches the package, and what a guest needs of it stays in
    ~/.cache/thalweg, or $XDG_CACHE_HOME/thalweg. The package linux-image-amd64 is larger, and has 9p, which flows of
    programs need.
    """
    from thalweg.kernel import PACKAGE, KernelProgress
    from thalweg.kernel import fetch as fetch_kernel

    try:
        with KernelProgress(output.console()) as progress:
            result = fetch_kernel(package or PACKAGE, suite, progress, is_forced=force)
    except KeyboardInterrupt:
        output.talk("interrupted: the download was removed; the same command starts it again")
        raise typer.Exit(Exit.INTERRUPTED) from None
    _show(result.kernel, "fetched" if result.is_new else "already there", as_json=as_json)


@commands.command("list", cls=helped.Command, epilog="Example: thalweg kernel list")
def list_(as_json: Json = False) -> None:
    """List the built (uml) and fetched (vm) kernels, each newest first."""
    from thalweg.kernel import current, guests, kernels

    built, fetched = kernels(), guests.kernels()
    used = (current(), guests.current())
    if as_json:
        both: list[Kernel | GuestKernel] = [*built, *fetched]
        output.data_json({"kernels": [_json(kernel) | {"current": kernel in used} for kernel in both]})
    elif not built and not fetched:
        output.talk("there is no kernel; to build one that runs in virtual time: thalweg kernel build")
        output.talk("to fetch one for guests: thalweg kernel fetch")
    else:
        rows = [["used" if kernel in used else "", kernel.name, "uml", kernel.built, kernel.source] for kernel in built]
        rows += [
            ["used" if kernel in used else "", kernel.name, "vm", kernel.fetched, kernel.source] for kernel in fetched
        ]
        output.data(output.table(["", "name", "engine", "since", "source"], rows))
    _warn_of_variable()


@commands.command("use", cls=helped.Command, epilog="Example: thalweg kernel use 6.1.192-0a1b2c3d4e5f")
def use(name: Name) -> None:
    """Select the default kernel of the engine uml or vm.

    A built kernel is for uml, a fetched one for vm. This machine's own kernel does not change.
    """
    kernel = _named(name)
    kernel.use()
    output.talk(f"selected: Linux {kernel.release}, {kernel.folder}")
    _warn_of_variable()


@commands.command("remove", cls=helped.Command, epilog="Example: thalweg kernel remove 6.1.192-0a1b2c3d4e5f")
def remove(name: Name) -> None:
    """Remove a built or fetched kernel."""
    from thalweg.kernel import GuestKernel, current, guests

    kernel = _named(name)
    kernel.remove()
    if isinstance(kernel, GuestKernel):
        is_left, next_command = guests.current() is not None, "thalweg kernel fetch"
    else:
        is_left, next_command = current() is not None, "thalweg kernel build"
    output.talk(f"removed: {kernel.folder}")
    if not is_left:
        output.talk(f"no kernel is selected; to select one: thalweg kernel use NAME, or {next_command}")


def _named(name: str) -> "Kernel | GuestKernel":
    from thalweg.kernel import guests, named

    return next((kernel for kernel in guests.kernels() if kernel.name == name), None) or named(name)


def _show(kernel: "Kernel | GuestKernel", state: str, *, as_json: bool) -> None:
    if as_json:
        output.data_json(_json(kernel))
        return
    output.data(f"{state}: Linux {kernel.release}, {kernel.folder}")
    _warn_of_variable()


def _json(kernel: "Kernel | GuestKernel") -> dict[str, object]:
    return asdict(kernel) | {"name": kernel.name, "folder": str(kernel.folder)}


def _warn_of_variable() -> None:
    """Warn if an environment variable selects another kernel, which takes precedence."""
    from thalweg.kernel import VARIABLE, guests

    for variable in (VARIABLE, guests.IMAGE_VARIABLE):
        if os.environ.get(variable):
            output.talk(f"note: {variable} is set and takes precedence: {os.environ[variable]}")
