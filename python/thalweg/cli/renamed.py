"""Renamed options: an earlier name is rejected with a hint that shows the current one."""

import shlex
from typing import TYPE_CHECKING

from thalweg.cli import helped, typed
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from typer._click import Context  # typer contains a copy of click, and its own `typer.Context` is narrower

RENAMED = {"--html": "--out", "--output": "--out"}
"""Current names of options, by their earlier names."""


class Command(helped.Command):
    """A subcommand that rejects earlier names of its options and suggests the correct command."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse `args`, the words after the subcommand.

        Raises:
            ThalwegError: If one of them is the earlier name of an option of this command.
        """
        options = {name for parameter in self.params for name in parameter.opts}
        for word in args[: args.index("--") if "--" in args else None]:
            name = word.partition("=")[0]
            if name not in options and RENAMED.get(name) in options:
                raise ThalwegError(
                    "renamed-option",
                    f"the option `{name}` is now `{RENAMED[name]}`",
                    place=name,
                    hint=shlex.join(_present(argument) for argument in typed.words()),
                )
        return super().parse_args(ctx, args)


def _present(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{RENAMED.get(name, name)}{equals}{value}"
