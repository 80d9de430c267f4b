"""Formats help texts without the names of Python types, and rejects repeated options."""

from collections import Counter
from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperCommand, TyperOption

from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter  # typer contains a copy of click

MAX_COLUMNS = 100


class Command(TyperCommand):
    """A command whose help names arguments as its usage line does: `FILE...`, not `FILE <list[Path]>`."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse `args`, the words after the command.

        Raises:
            ThalwegError: If an option that takes one value is given several times.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, count in Counter(order).items():
            is_single = isinstance(parameter, TyperOption) and not parameter.multiple and not parameter.is_flag
            if is_single and count > 1:
                name = parameter.opts[-1]
                raise ThalwegError("bad-usage", f"{name} is given {count} times", place=name, expected="one value")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the sections of arguments and options."""
        parameters = self.get_params(ctx)
        arguments = [_argument(each, ctx) for each in parameters if isinstance(each, TyperArgument) and not each.hidden]
        options = [each.get_help_record(ctx) for each in parameters if not isinstance(each, TyperArgument)]
        for heading, records in (("Arguments", arguments), ("Options", options)):
            if shown := [record for record in records if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(shown)


def _argument(argument: "TyperArgument", ctx: "Context") -> tuple[str, str] | None:
    record = argument.get_help_record(ctx)
    if record is None:
        return None
    name = record[0].partition(" <")[0]
    return (name if argument.nargs == 1 or name.endswith("]") else f"{name}..."), record[1]
