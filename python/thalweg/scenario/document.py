"""A scenario file: its text, values and line numbers."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import cast

from thalweg.errors import Source, ThalwegError
from thalweg.files import LARGEST_TEXT, read_regular
from thalweg.scenario import axis, positions, rows
from thalweg.scenario.positions import KeyPath

READY_MADE = Path(str(files("thalweg") / "data" / "scenarios")).resolve()
"""Folder of the bundled scenarios."""

MAX_EXCERPT = 80
"""Maximum number of characters of a line that an error shows."""

OF_SEARCHES = ("search", "fuzz")
"""Tables of a scenario file about searches, which are not part of the scenario's schema."""

Value = axis.Value

TomlValue = object
"""A value from tomllib; its reader narrows the type."""

Replacements = Mapping[str, TomlValue]
"""Replacements of a scenario's values, by address; a list replaces the key's sweep."""

Raw = dict[str, TomlValue]
"""A TOML table as tomllib returns it."""


@dataclass(frozen=True)
class Document:
    """A scenario file that is valid TOML, otherwise unchecked."""

    file: Path
    text: str
    raw: Raw
    not_in_file: frozenset[KeyPath] = field(default=frozenset())
    """Key paths that settings of the command line or the Python API have set."""
    searches: Raw = field(default_factory=dict)
    """The tables of searches, unchecked; they are not part of `raw`."""

    @cached_property
    def sweep_rows(self) -> rows.Rows | None:
        """The rows of the files in a checked scenario's sweep; None: its sweep has no files."""
        names = cast(dict[str, list[str]], self.raw.get("sweep", {})).get(rows.KEY)
        return rows.read(names, self.file.parent) if names else None

    @cached_property
    def axes(self) -> list[axis.Axis]:
        """The axes of a checked scenario's sweep, in the order of the file."""
        swept = cast(dict[str, list[Value]], self.raw.get("sweep", {}))
        axes = []
        for address, values in swept.items():
            if address == rows.KEY and self.sweep_rows:
                axes.append(self.sweep_rows.axis)
            else:
                axes.append(axis.Axis((address,), tuple((value,) for value in values)))
        return axes

    @property
    def swept(self) -> dict[str, list[Value]]:
        """The values of the sweep of a checked scenario, by address; values in rows are listed once."""
        return {
            address: list(dict.fromkeys(choice[number] for choice in axis_.choices))
            for axis_ in self.axes
            for number, address in enumerate(axis_.addresses)
        }

    @property
    def flows(self) -> list[Raw]:
        """The flows of a checked scenario."""
        return cast(list[Raw], self.raw["flow"])

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return positions.lines(self.text)

    def source(self, key_path: KeyPath) -> Source:
        """Return the position of a key path: its line in the file, or `--set` if a setting has set it."""
        if any(key_path[: len(other)] == other for other in self.not_in_file):
            return Source("--set")
        return Source(str(self.file), positions.line_of(key_path, self._lines))

    def sweep_source(self, address: str, value: TomlValue) -> Source:
        """Return the position of a value of the sweep: its row, or the line of its key."""
        is_list = address in cast(Raw, self.raw.get("sweep", {}))
        if not is_list and self.sweep_rows and address in self.sweep_rows.addresses:
            return self.sweep_rows.source({address: cast(Value, value)})
        return self.source(("sweep", address))


def set_searches_aside(document: Document) -> Document:
    """Move the tables of searches out of `raw`."""
    searches = {name: document.raw[name] for name in OF_SEARCHES if name in document.raw}
    raw = {name: value for name, value in document.raw.items() if name not in searches}
    return replace(document, raw=raw, searches=searches)


def read(file: Path) -> Document:
    """Read a scenario file.

    Raises:
        ThalwegError: If the file does not exist, cannot be read, is not UTF-8 or is not TOML.
    """
    try:
        text = read_regular(file, LARGEST_TEXT).decode("utf-8-sig")  # some editors begin files with a byte order mark
    except FileNotFoundError:
        raise _no_file(file) from None
    except IsADirectoryError:
        raise ThalwegError("no-file", f"`{file}` is a directory", place=str(file), hint=_toml_files(file)) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ThalwegError(
            "cannot-read", f"`{file}` cannot be read: {why}", place=str(file), hint=f"ls -l '{file}'"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        encoding = "UTF-16" if error.object.startswith((b"\xff\xfe", b"\xfe\xff")) else "LATIN1"
        raise ThalwegError(
            "not-utf8",
            f"`{file}` is not UTF-8 text",
            found=f"the byte 0x{error.object[error.start]:02x}",
            source=Source(str(file), line),
            expected="a TOML file",
            hint=f"iconv -f {encoding} -t UTF-8 '{file}'",
        ) from None
    try:
        return Document(file, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _syntax(file, text, str(error)) from None
    except RecursionError:
        raise _unreadable(
            file, "brackets are nested too deeply", "no key of a scenario needs more than three"
        ) from None
    except ValueError:  # raised by int() for numbers of more than some thousand digits
        raise _unreadable(file, "a number has thousands of digits", "the largest number is 9007199254740991") from None


def _unreadable(file: Path, why: str, hint: str) -> ThalwegError:
    return ThalwegError("toml-syntax", f"invalid TOML: {why}", source=Source(str(file)), hint=hint)


def _syntax(file: Path, text: str, message: str) -> ThalwegError:
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    why = match[1] if match else message
    line, column = (int(match[2]), int(match[3])) if match and match[2] else (len(text.splitlines()), None)
    content = text.splitlines()[line - 1].strip() if 0 < line <= len(text.splitlines()) else ""
    hint = "TOML is described on https://toml.io"
    if why.startswith(("Invalid value", "Expected newline")) and re.match(r"[\w.-]+\s*=\s*[^\"'\[{\s]", content):
        hint = 'strings need quotes, as in rate = "40Mbps"'
    if twice := re.match(r"Cannot declare \((.*?),?\) twice", why):
        name = ".".join(re.findall(r"'(.*?)'", twice[1]))
        why, hint = f"the table [{name}] is defined twice", "merge the two; only lists, such as [[flow]], can repeat"
    if why.startswith("Illegal character") and content.count('"') % 2:
        why, hint = "a string does not end on its line", 'add the missing " at its end'
    if why == "Invalid value" and match and not match[2]:
        why, hint = "the file ends in the middle of a value", "close the brackets and quotes of the last value"
    if why == "Cannot overwrite a value":
        why, hint = "a key is set twice", "remove one of the two"
    return ThalwegError(
        "toml-syntax",
        f"invalid TOML: {why[0].lower() + why[1:]}",
        source=Source(str(file), line, column),
        found=f"`{content[:MAX_EXCERPT]}`" + ("..." if len(content) > MAX_EXCERPT else "") if content else None,
        hint=hint,
    )


def _no_file(file: Path) -> ThalwegError:
    return ThalwegError("no-file", f"there is no file `{file}`", place=str(file), hint=_toml_files(file.parent))


def _toml_files(folder: Path) -> str:
    listed = sorted(folder.glob("*.toml"))[:6] if folder.is_dir() else []
    if not listed:
        return f"ready-made scenarios are in {READY_MADE}"
    return f"`{folder}` contains {', '.join(file.name for file in listed)}"
