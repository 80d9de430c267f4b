"""Scenario files: parsing, checks, and an explanation of every mistake.

    document = scenario.load("itc.toml")

This layer imports no other layer except shared modules, such as the errors.
"""

from os import PathLike
from pathlib import Path

from thalweg.scenario.check import check as _check
from thalweg.scenario.check import find, overridden
from thalweg.scenario.departures import departures
from thalweg.scenario.document import Document, Replacements, read, set_searches_aside

__all__ = ["Document", "checked", "departures", "find", "load", "overridden", "unchecked"]


def load(file: str | PathLike[str], settings: Replacements | None = None) -> Document:
    """Read and check a scenario, with `settings` instead of its own values; a list replaces the key's sweep.

    Raises:
        ThalwegError: If the file cannot be read or is not TOML.
        ThalwegErrors: If the scenario or the settings have mistakes.
    """
    return checked(unchecked(file, settings))


def unchecked(file: str | PathLike[str], settings: Replacements | None = None) -> Document:
    """Read a scenario as `load` does, without checking it.

    Raises:
        ThalwegError: If the file cannot be read or is not TOML.
        ThalwegErrors: If settings name keys that are unknown or cannot be set.
    """
    return overridden(set_searches_aside(read(Path(file))), settings or {})


def checked(document: Document) -> Document:
    """Check a document, and return it.

    Raises:
        ThalwegErrors: If the document has mistakes.
    """
    _check(document)
    return document
