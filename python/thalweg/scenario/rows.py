"""Files of a sweep: CSV files whose rows set several keys together, as in `[sweep] rows = ["paths.csv"]`.

The header lists keys of the scenario. A cell is a number, `true` or `false`, or a text such as a quantity.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from thalweg.errors import Source, ThalwegError
from thalweg.files import LARGEST_TEXT, read_regular
from thalweg.scenario.axis import Axis, Value

KEY = "rows"
"""The key of [sweep] that lists the files."""


@dataclass(frozen=True)
class Row:
    """The values that one row sets, and its line."""

    values: tuple[Value, ...]
    source: Source


@dataclass(frozen=True)
class Rows:
    """The rows of one or more files with the same header."""

    addresses: tuple[str, ...]
    rows: tuple[Row, ...]
    header: Source
    """Position of the first file's header."""

    @property
    def axis(self) -> Axis:
        """The sweep axis that consists of the rows."""
        return Axis(self.addresses, tuple(row.values for row in self.rows))

    def source(self, values: Mapping[str, Value]) -> Source:
        """Return the position of the first row with these values, by address; without such a row, of the header."""
        for row in self.rows if values.keys() & set(self.addresses) else ():
            if all(values.get(key, value) == value for key, value in zip(self.addresses, row.values, strict=True)):
                return row.source
        return self.header


def read(names: Sequence[str], folder: Path) -> Rows:
    """Read the files, whose names are relative to `folder`.

    Raises:
        ThalwegError: If a file cannot be read or is malformed, headers differ, or two rows are the same.
    """
    header, first, rows = _file(folder / names[0])
    for name in names[1:]:
        other_header, addresses, file_rows = _file(folder / name)
        if addresses != first:
            raise ThalwegError(
                "bad-rows",
                f"`{name}` and `{names[0]}` set different keys",
                found=", ".join(addresses),
                expected=", ".join(first),
                source=other_header,
            )
        rows += file_rows
    rows_by_values: dict[tuple[Value, ...], Row] = {}
    for row in rows:
        if twin := rows_by_values.get(row.values):
            twin_text = f"line {twin.source.line} of `{Path(twin.source.file).name}`"
            hint = "to run a point several times, set `repetitions`"
            raise ThalwegError(
                "duplicate-value", f"the row is the same as {twin_text}", place=KEY, hint=hint, source=row.source
            )
        rows_by_values[row.values] = row
    return Rows(first, tuple(rows), header)


def value_of(cell: str) -> Value:
    """Parse a cell.

    >>> value_of("40Mbps"), value_of("0.01"), value_of("3"), value_of("true")
    ('40Mbps', 0.01, 3, True)
    """
    if cell in ("true", "false"):
        return cell == "true"
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _file(file: Path) -> tuple[Source, tuple[str, ...], list[Row]]:
    try:
        text = read_regular(file, LARGEST_TEXT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else (error.strerror or "").lower()
        raise ThalwegError(
            "cannot-read",
            f"the file of rows `{file}` cannot be read: {why}",
            place=str(file),
            expected="a CSV file in the scenario's folder",
            hint=f"ls -l '{file.parent}'",
        ) from None
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells]
    if len(lines) < 2:
        raise ThalwegError(
            "bad-rows",
            f"`{file}` has no rows",
            expected="a header of keys, such as path.rate,path.rtt, and at least one row",
            source=Source(str(file), 1),
        )
    (header_line, header), *body = lines
    header_source = Source(str(file), header_line)
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise ThalwegError(
            "conflict",
            f"`{twice}` is set twice: by two columns of the file",
            place=twice,
            expected="one column for each key",
            hint=f"remove one of the columns `{twice}`",
            source=header_source,
        )
    for number, cells in body:
        if len(cells) != len(header):
            raise ThalwegError(
                "bad-rows",
                f"the row has {len(cells)} cells",
                found=",".join(cells),
                expected=f"{len(header)} cells: {', '.join(header)}",
                source=Source(str(file), number),
            )
    rows = [Row(tuple(map(value_of, cells)), Source(str(file), number)) for number, cells in body]
    return header_source, tuple(header), rows
