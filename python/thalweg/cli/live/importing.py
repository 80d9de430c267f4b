"""`thalweg import`: converts logs and dumps of other sources to records."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from thalweg.cli.options import option
from thalweg.cli.printing import output
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg.records.imports import Imported, Importer, Mapped, Notation
    from thalweg.records.imports.convert import ReasonCount

EPILOG = (
    "Example: thalweg import nginx access.log --config /etc/nginx/nginx.conf --out records/\n\n"
    "docs/reference/importing.md lists the source of each column by format."
)

Given = TypedDict(
    "Given",
    {
        "--format-string": str | None,
        "--config": Path | None,
        "--format-name": str | None,
        "--map": list[str] | None,
        "--map-file": Path | None,
        "--delimiter": str | None,
        "--decimal": str | None,
        "--time-format": str | None,
        "--time": str | None,
    },
)

OF_FORMAT = {
    "nginx": {"--format-string", "--config", "--format-name", "--map", "--map-file"},
    "varnish": {"--format-string", "--map", "--map-file"},
    "csv": {"--map", "--map-file", "--delimiter", "--decimal", "--time-format"},
    "json": {"--map", "--map-file", "--decimal", "--time-format"},
    "haproxy": {"--format-string", "--map", "--map-file"},
    "iperf3": set[str](),
    "ndt": set[str](),
    "ss": {"--time"},
}


def command(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=f"{', '.join(OF_FORMAT)}.", show_default=False)],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Files, plain or gzipped.", show_default=False),
    ],
    out: Annotated[Path, option("--out", "DIR", "Folder for the records; created if missing.")],
    format_string: Annotated[
        str | None,
        option(
            "--format-string",
            "TEXT",
            "nginx, varnish, haproxy: format of the log. [default: combined; varnishncsa's default; httplog or tcplog]",
        ),
    ] = None,
    config: Annotated[
        Path | None, option("--config", "FILE", "nginx: configuration file that contains the log_format.")
    ] = None,
    format_name: Annotated[
        str | None, option("--format-name", "NAME", "nginx: name of the log_format. [default: the only one]")
    ] = None,
    maps: Annotated[
        list[str] | None,
        option(
            "--map",
            "COLUMN=FIELD[:UNIT]",
            "All but iperf3, ndt, ss: fill a column from a field; can be repeated. csv, json: this or --map-file is"
            " required.",
        ),
    ] = None,
    map_file: Annotated[Path | None, option("--map-file", "FILE", "TOML file with mappings as in --map.")] = None,
    delimiter: Annotated[
        str | None, option("--delimiter", "TEXT", "csv: field separator. [default: comma; tab for .tsv]")
    ] = None,
    decimal: Annotated[
        str | None,
        option("--decimal", "MARK", "csv, json: decimal mark, '.' or ','; the other separates thousands."),
    ] = None,
    time_format: Annotated[
        str | None, option("--time-format", "FORMAT", "csv, json: format of times, as for strptime: '%d/%m/%Y %H:%M'.")
    ] = None,
    time: Annotated[
        str | None,
        option("--time", "TIME", "ss: time of dumps that contain none. [default: when the file was written]"),
    ] = None,
    addresses: Annotated[
        str,
        option(
            "--addresses",
            "FORM",
            "Form of addresses: whole, truncated (/24, /48) or hashed. [default: truncated]",
        ),
    ] = "truncated",
    key: Annotated[
        Path | None, option("--key", "FILE", "Key file of --addresses hashed. [default: /var/lib/thalweg/address.key]")
    ] = None,
    machine: Annotated[str | None, option("--machine", "NAME", "Machine name for rows that have none.")] = None,
    cc: Annotated[str | None, option("--cc", "NAME", "Congestion control for rows that have none.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a line that cannot be read.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Convert logs and dumps of other sources to records.

    The columns are those of `thalweg-agent record`, so that `thalweg records` reads both; columns that a source lacks
    are empty. An input file becomes one file of records, which a repeated import replaces. Lines that cannot be read
    are counted and left out. If a file cannot be read, no records are written.
    """
    options: Given = {
        "--format-string": format_string, "--config": config, "--format-name": format_name, "--map": maps,
        "--map-file": map_file, "--delimiter": delimiter, "--decimal": decimal, "--time-format": time_format,
        "--time": time,
    }  # fmt: skip
    _check(form, options)
    from thalweg.records import imports
    from thalweg.records.imports.addresses import with_key

    constants = {name: value for name, value in (("machine", machine), ("cc", cc)) if value}
    imported = imports.convert(
        IMPORTERS[form](options), files, out, addresses=with_key(addresses, key), constants=constants, strict=strict
    )
    if as_json:
        output.data_json(_as_json(imported))
        return
    for file in imported.files:
        output.data(str(file))
    _talk_of(imported)


def _check(form: str, options: Given) -> None:
    if form not in OF_FORMAT:
        formats = ", ".join(OF_FORMAT)
        raise ThalwegError(
            "no-format",
            f"`{form}` is not a format that can be imported",
            place="FORMAT",
            found=f"`{form}`",
            expected=formats,
        )
    for flag, value in options.items():
        if value is not None and flag not in OF_FORMAT[form]:
            owners = " and ".join(name for name, flags in OF_FORMAT.items() if flag in flags)
            own_flags = ", ".join(sorted(OF_FORMAT[form])) or "none of its own"
            raise ThalwegError(
                "bad-usage",
                f"{flag} is for {owners}, not for {form}",
                place=flag,
                expected=f"options of {form}: {own_flags}",
            )


def _nginx(options: Given) -> "Importer":
    from thalweg.records.imports import COMBINED, Nginx, log_format
    from thalweg.records.imports.nginx_config import unescaped

    text, config, name = options["--format-string"], options["--config"], options["--format-name"]
    if text and config:
        raise ThalwegError("bad-usage", "--format-string and --config cannot be combined", expected="one of them")
    if name and not config:
        raise ThalwegError("bad-usage", "--format-name requires --config", place="--format-name",
                           hint=f"--config /etc/nginx/nginx.conf --format-name {name}")  # fmt: skip
    return Nginx(log_format(config, name) if config else unescaped(text) if text else COMBINED, _mapping(options))


def _varnish(options: Given) -> "Importer":
    from thalweg.records.imports import Varnish
    from thalweg.records.imports.varnish import DEFAULT

    return Varnish(options["--format-string"] or DEFAULT, _mapping(options))


def _csv(options: Given) -> "Importer":
    from thalweg.records.imports import CsvTable

    delimiter = str(options["--delimiter"] or "").replace("\\t", "\t")
    if len(delimiter) > 1 or delimiter in ('"', "\r", "\n"):
        raise ThalwegError("bad-usage", f"{delimiter!r} cannot separate fields", place="--delimiter",
                           expected="one character, and not a quote", hint="--delimiter ';'")  # fmt: skip
    return CsvTable(_mapping(options), delimiter, _notation(options))


def _mapping(options: Given) -> "Sequence[Mapped]":
    from thalweg.records.imports import mapping

    return mapping(options["--map"] or (), options["--map-file"])


def _notation(options: Given) -> "Notation":
    from thalweg.records.imports import Notation

    decimal = options["--decimal"] or ""
    if decimal not in ("", ".", ","):
        raise ThalwegError("bad-usage", f"`{decimal}` is not a decimal mark", place="--decimal",
                           expected="`.` or `,`", hint="--decimal ','")  # fmt: skip
    return Notation(decimal, options["--time-format"] or "")


def _json(options: Given) -> "Importer":
    from thalweg.records.imports import JsonLines

    return JsonLines(_mapping(options), _notation(options))


def _haproxy(options: Given) -> "Importer":
    from thalweg.records.imports import Haproxy

    return Haproxy(options["--format-string"] or "", _mapping(options))


def _iperf3(options: Given) -> "Importer":
    from thalweg.records.imports import Iperf3

    return Iperf3()


def _ndt(options: Given) -> "Importer":
    from thalweg.records.imports import Ndt

    return Ndt()


def _ss(options: Given) -> "Importer":
    from thalweg.records.imports import Ss
    from thalweg.records.imports.items import Unread
    from thalweg.records.imports.times import instant

    try:
        return Ss(instant(options["--time"]) if options["--time"] else None)
    except Unread as why:
        raise ThalwegError("bad-usage", f"{why}", place="--time", expected="a date and time, or UNIX time in seconds",
                           hint="--time 2026-01-31T12:00:00Z") from None  # fmt: skip


IMPORTERS: Mapping[str, Callable[[Given], "Importer"]] = {
    "nginx": _nginx, "varnish": _varnish, "csv": _csv, "json": _json, "haproxy": _haproxy, "iperf3": _iperf3,
    "ndt": _ndt, "ss": _ss,
}  # fmt: skip


def _talk_of(imported: "Imported") -> None:
    suffix = (
        f"; {imported.replaced} of the files had been imported before, and are replaced" if imported.replaced else ""
    )
    output.talk(f"{imported.rows} record{'s' * (imported.rows != 1)}{suffix}")
    for why, reason in imported.left_out.most_common():
        output.talk(f"left out: {_counted(why, reason)}")
    for text, reason in imported.fallbacks.most_common():
        output.talk(f"note: {_counted(text, reason)}")
    if imported.unread:
        output.talk(f"{imported.unread} line{'s' * (imported.unread != 1)} could not be read:")
        for _, reason in imported.unread_lines.most_common():
            output.talk(f"  {reason.count} x {reason.first}")


def _counted(text: str, reason: "ReasonCount") -> str:
    return f"{reason.count} x {text} (first {reason.first.file}:{reason.first.line})"


def _as_json(imported: "Imported") -> dict[str, object]:
    return {
        "files": [str(file) for file in imported.files],
        "replaced": imported.replaced,
        "rows": imported.rows,
        "columns": sorted(imported.filled),
        "left_out": imported.left_out.counts(),
        "fallbacks": [_reason(text, reason) for text, reason in imported.fallbacks.most_common()],
        "unread": imported.unread,
        "first_unread": [_reason(text, reason) for text, reason in imported.unread_lines.most_common()],
    }


def _reason(text: str, reason: "ReasonCount") -> dict[str, object]:
    first = reason.first
    return {
        "reason": text, "lines": reason.count, "file": str(first.file), "line": first.line, "why": first.why,
    }  # fmt: skip
