"""`thalweg import`: logs and dumps of other sources become records."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli import output
from thalweg.cli.options import option
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg.records.imports import Imported, Importer

EPILOG = (
    "Example: thalweg import nginx access.log --config /etc/nginx/nginx.conf --out records/\n\n"
    "Where each column comes from, format by format: docs/reference/importing.md."
)

Given = Mapping[str, Any]

OF_FORMAT = {
    "nginx": {"--format-string", "--config", "--format-name"},
    "varnish": {"--format-string"},
    "csv": {"--map", "--map-file", "--delimiter"},
    "ndt": set[str](),
    "ss": {"--time"},
}
"""Options that only some formats have."""


def command(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="nginx, varnish, csv, ndt or ss.", show_default=False)],
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="What to read; .gz as well.", show_default=False)],
    out: Annotated[Path, option("--out", "DIR", "Folder for the records; it is made.")],
    format_string: Annotated[
        str | None, option("--format-string", "TEXT", "nginx, varnish: the log's format. [default: the server's own]")
    ] = None,
    config: Annotated[Path | None, option("--config", "FILE", "nginx: the nginx.conf that has its log_format.")] = None,
    format_name: Annotated[
        str | None, option("--format-name", "NAME", "nginx: which log_format. [default: the only one]")
    ] = None,
    maps: Annotated[
        list[str] | None,
        option("--map", "COLUMN=HEADING[:UNIT]", "csv: a column of records, and the CSV's column that it is."),
    ] = None,
    map_file: Annotated[Path | None, option("--map-file", "FILE", "csv: the same as TOML.")] = None,
    delimiter: Annotated[
        str | None, option("--delimiter", "TEXT", "csv: what separates fields. [default: a comma; of .tsv a tab]")
    ] = None,
    time: Annotated[
        str | None, option("--time", "TIME", "ss: when it was printed. [default: when the file was written]")
    ] = None,
    addresses: Annotated[
        str, option("--addresses", "FORM", "whole, truncated (/24, /48) or hashed. [default: truncated]")
    ] = "truncated",
    key: Annotated[Path | None, option("--key", "FILE", "Key of hashed addresses. [default: thalweg-agent's]")] = None,
    machine: Annotated[
        str | None, option("--machine", "NAME", "Machine that it is from, where the source does not say.")
    ] = None,
    cc: Annotated[str | None, option("--cc", "NAME", "Congestion control, where the source does not say.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a line that cannot be read.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Make records of logs and dumps of other sources.

    The columns are those of `thalweg-agent record`, so that `thalweg records` reads both; what a source does not know
    stays empty. Each file becomes one; importing it again replaces that. A line that cannot be read is counted and
    left out. If the import fails, nothing is left behind.
    """
    given = {
        "--format-string": format_string, "--config": config, "--format-name": format_name, "--map": maps,
        "--map-file": map_file, "--delimiter": delimiter, "--time": time,
    }  # fmt: skip
    _check(form, given)
    from thalweg.records import imports
    from thalweg.records.imports.addresses import with_key

    constants = {name: value for name, value in (("machine", machine), ("cc", cc)) if value}
    done = imports.convert(
        IMPORTERS[form](given), files, out, addresses=with_key(addresses, key), constants=constants, strict=strict
    )
    if as_json:
        output.data_json(_as_json(done))
        return
    for file in done.files:
        output.data(str(file))
    _talk_of(done)


def _check(form: str, given: Given) -> None:
    if form not in OF_FORMAT:
        known = ", ".join(OF_FORMAT)
        raise ThalwegError(
            "no-format",
            f"`{form}` is no format that can be imported",
            place="FORMAT",
            found=f"`{form}`",
            expected=known,
        )
    for flag, value in given.items():
        if value is not None and flag not in OF_FORMAT[form]:
            owners = " and ".join(each for each, flags in OF_FORMAT.items() if flag in flags)
            own = ", ".join(sorted(OF_FORMAT[form])) or "none of its own"
            raise ThalwegError(
                "bad-usage", f"{flag} is for {owners}, not for {form}", place=flag, expected=f"options of {form}: {own}"
            )


def _nginx(given: Given) -> "Importer":
    from thalweg.records.imports import COMBINED, Nginx, log_format

    text, config, name = given["--format-string"], given["--config"], given["--format-name"]
    if text and config:
        raise ThalwegError("bad-usage", "--format-string and --config both name the format", expected="one of them")
    if name and not config:
        raise ThalwegError("bad-usage", "--format-name is a name in a --config", place="--format-name",
                           hint=f"--config /etc/nginx/nginx.conf --format-name {name}")  # fmt: skip
    return Nginx(log_format(config, name) if config else text or COMBINED)


def _varnish(given: Given) -> "Importer":
    from thalweg.records.imports import Varnish

    return Varnish(given["--format-string"]) if given["--format-string"] else Varnish()


def _csv(given: Given) -> "Importer":
    from thalweg.records.imports import Table, mapping

    delimiter = str(given["--delimiter"] or "").replace("\\t", "\t")
    if len(delimiter) > 1 or delimiter in ('"', "\r", "\n"):
        raise ThalwegError("bad-usage", f"{delimiter!r} is nothing that separates fields", place="--delimiter",
                           expected="one character, and no quote", hint="--delimiter ';'")  # fmt: skip
    return Table(mapping(given["--map"] or (), given["--map-file"]), delimiter)


def _ndt(given: Given) -> "Importer":
    from thalweg.records.imports import Ndt

    return Ndt()


def _ss(given: Given) -> "Importer":
    from thalweg.records.imports import Ss
    from thalweg.records.imports.items import Unread
    from thalweg.records.imports.values import instant

    try:
        return Ss(instant(given["--time"]) if given["--time"] else None)
    except Unread as why:
        raise ThalwegError("bad-usage", f"{why}", place="--time", expected="a date and time, or UNIX time in seconds",
                           hint="--time 2026-01-31T12:00:00Z") from None  # fmt: skip


IMPORTERS: Mapping[str, Callable[[Given], "Importer"]] = {
    "nginx": _nginx, "varnish": _varnish, "csv": _csv, "ndt": _ndt, "ss": _ss,
}  # fmt: skip


def _talk_of(done: "Imported") -> None:
    again = f"; {done.replaced} of the files had been imported before, and are replaced" if done.replaced else ""
    output.talk(f"{done.rows} record{'s' * (done.rows != 1)}{again}")
    for why, count in done.left_out.most_common():
        output.talk(f"left out: {count} x {why}")
    if done.unread:
        output.talk(f"{done.unread} line{'s' * (done.unread != 1)} could not be read:")
        for line in done.first_unread:
            output.talk(f"  {line}")
        if done.unread > len(done.first_unread):
            output.talk(f"  and {done.unread - len(done.first_unread)} more")


def _as_json(done: "Imported") -> dict[str, Any]:
    return {
        "files": [str(file) for file in done.files],
        "replaced": done.replaced,
        "rows": done.rows,
        "columns": sorted(done.filled),
        "left_out": dict(done.left_out.most_common()),
        "unread": done.unread,
        "first_unread": [{"file": str(line.file), "line": line.line, "why": line.why} for line in done.first_unread],
    }
