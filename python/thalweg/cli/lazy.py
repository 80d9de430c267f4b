"""A command whose module is imported when it is called, so that `thalweg --help` is fast."""

from importlib import import_module
from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand

from thalweg.cli import renamed

if TYPE_CHECKING:
    from typer._click import Command, Context


class Lazy(TyperCommand):
    """Placeholder for the command of a module, which has a function `command` or an app `commands`."""

    def __init__(self, name: str, module: str, first_line: str) -> None:
        super().__init__(name, help=first_line)
        self.module = module

    def make_context(
        self, info_name: str | None, args: list[str], parent: "Context | None" = None, **extra: object
    ) -> "Context":
        """Parse `args` with the actual command, which the returned context invokes."""
        return self.loaded().make_context(info_name, args, parent=parent, **extra)

    def loaded(self) -> "Command":
        """Import the command."""
        module = import_module(self.module)
        if hasattr(module, "commands"):
            return typer.main.get_group(module.commands)
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(self.name, cls=renamed.Command, epilog=module.EPILOG)(module.command)
        return typer.main.get_command(app)
