"""Conditions on records, as in `--where direction=in`: only rows with these values count."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from thalweg.errors import ThalwegError

Where = tuple[tuple[str, str], ...]
"""Columns, each with the value that rows must have."""


def conditions(settings: Sequence[str]) -> Where:
    """Parse conditions.

    Raises:
        ThalwegError: If one is not COLUMN=VALUE.

    >>> conditions(["direction=in", "cgroup=/system.slice/nginx.service"])
    (('direction', 'in'), ('cgroup', '/system.slice/nginx.service'))
    """
    parsed = []
    for setting in settings:
        column, equals, value = setting.partition("=")
        if not (column and equals and value):
            raise ThalwegError(
                "bad-where",
                f"`--where {setting}` is not COLUMN=VALUE",
                place="--where",
                found=f"`{setting}`",
                expected="a column and the value of its rows",
                hint="--where direction=in",
            )
        parsed.append((column, value))
    return tuple(parsed)


def check_columns(where: Where, known: Collection[str]) -> None:
    """Check the columns of conditions.

    Raises:
        ThalwegError: If the records do not have a column.
    """
    for column, _ in where:
        if column not in known:
            near = get_close_matches(column, sorted(known), 1)
            raise ThalwegError(
                "no-column",
                f"the records have no column `{column}`",
                place="--where",
                expected="a column of docs/reference/records.md",
                hint=f"did you mean {near[0]}?" if near else None,
            )


def text(where: Where) -> str:
    """Return conditions as text, empty without any.

    >>> text((("direction", "in"), ("machine", "web1")))
    'direction = in and machine = web1'
    """
    return " and ".join(f"{column} = {value}" for column, value in where)
