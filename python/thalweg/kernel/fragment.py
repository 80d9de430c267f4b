"""Kconfig fragments: read, merged, and checked against the resulting configuration.

Kconfig silently drops options whose dependencies are off, or that this version lacks. Therefore the requested options
are checked in the resulting configuration.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from thalweg.errors import Source, ThalwegError, ThalwegErrors

OFF = "n"

OFFERED = ("CONFIG_TCP_CONG_", "CONFIG_NET_SCH_")
"""Prefixes of options that a kernel may lack: without one, flows cannot use that algorithm or queue."""

TICKS = "CONFIG_HZ"
"""Option for timer ticks per second. UML's Kconfig fixes it; `wrapper` overrides it."""

_SET = re.compile(r"(CONFIG_\w+)=(\S.*)")
_UNSET = re.compile(r"#\s*(CONFIG_\w+) is not set")


@dataclass(frozen=True)
class Fragment:
    """Options and their values in Kconfig syntax, in order."""

    name: str
    options: Mapping[str, str]
    lines: Mapping[str, int]

    @classmethod
    def ours(cls) -> "Fragment":
        """Read the engine's fragment."""
        return parse(files("thalweg").joinpath("data/uml.config").read_text(encoding="utf-8"), "uml.config")

    @classmethod
    def load(cls, file: Path) -> "Fragment":
        """Read a user's fragment.

        Raises:
            ThalwegError: If it cannot be read or is malformed.
        """
        try:
            return parse(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is not text"
            raise ThalwegError(
                "no-config",
                f"cannot read `{file}`: {why}",
                place="--config",
                expected="a file with lines such as CONFIG_TCP_CONG_LP=y",
            ) from None


def parse(text: str, name: str) -> Fragment:
    """Parse a fragment; a later line takes precedence over an earlier one.

    Raises:
        ThalwegErrors: If lines are malformed.

    >>> parse('CONFIG_HZ=250\\n# CONFIG_IPV6 is not set\\n', "x").options
    {'CONFIG_HZ': '250', 'CONFIG_IPV6': 'n'}
    """
    options: dict[str, str] = {}
    lines: dict[str, int] = {}
    mistakes = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if match := _SET.fullmatch(line):
            option, value = match.groups()
            if value == "m":
                mistakes.append(_malformed(name, number, line, f"{option}=y: this kernel has no modules"))
        elif match := _UNSET.fullmatch(line):
            option, value = match[1], OFF
        elif not line or line.startswith("#"):
            continue
        else:
            mistakes.append(_malformed(name, number, line, "CONFIG_NAME=y, or # CONFIG_NAME is not set"))
            continue
        options[option], lines[option] = value, number
    if mistakes:
        raise ThalwegErrors(mistakes)
    return Fragment(name, options, lines)


def merged(fragments: list[Fragment]) -> dict[str, str]:
    """Merge fragments; the last one that sets an option takes precedence.

    Raises:
        ThalwegErrors: If a fragment disables a required option of the first one, the engine's fragment.
    """
    base, *others = fragments
    mistakes = [
        ThalwegError(
            "config-needed",
            f"{option} is off, but the engine requires it",
            place=option,
            source=Source(other.name, other.lines[option]),
            hint="remove the line",
        )
        for other in others
        for option, value in other.options.items()
        if value == OFF and base.options.get(option, OFF) != OFF and not option.startswith(OFFERED)
    ]
    if mistakes:
        raise ThalwegErrors(mistakes)
    return {option: value for fragment in fragments for option, value in fragment.options.items()}


def write(options: Mapping[str, str]) -> str:
    """Return options in Kconfig syntax."""
    return "".join(
        f"# {option} is not set\n" if value == OFF else f"{option}={value}\n" for option, value in options.items()
    )


def wrapper(kconfig: str, ticks: str) -> str:
    """Return a tree's top-level Kconfig with a definition of HZ before that of UML, which allows only 100.

    Kconfig uses the first of several defaults.
    """
    at = re.search(r"^mainmenu .*\n", kconfig, flags=re.MULTILINE)
    end = at.end() if at else 0
    return f"{kconfig[:end]}\nconfig HZ\n\tint\n\tdefault {ticks}\n{kconfig[end:]}"


def missing(fragments: list[Fragment], config: str, tree: Path) -> list[str]:
    """Compare the requested options with the resulting configuration.

    Returns:
        The missing optional ones of the engine's fragment, as text.

    Raises:
        ThalwegErrors: If any other option is missing.
    """
    holds = parse(config, "").options if config else {}
    requested = merged(fragments)
    lost = {option for option, value in requested.items() if holds.get(option, OFF) != value}
    described = dict(_described(tree, lost)) if lost else {}
    base, notes, mistakes = fragments[0], [], []
    for option in sorted(lost):
        asked_by = [fragment for fragment in fragments if option in fragment.options][-1]
        why = _why(option, requested[option], holds.get(option), described.get(option))
        if asked_by is base and option.startswith(OFFERED):
            notes.append(f"{why}; flows and queues that use it are rejected")
        else:
            source = None if asked_by is base else Source(asked_by.name, asked_by.lines[option])
            mistakes.append(_lost(option, why, source))
    if mistakes:
        raise ThalwegErrors(mistakes)
    return notes


def _why(option: str, requested: str, holds: str | None, described: str | None) -> str:
    if described is None:
        return f"{option} does not exist in this kernel"
    text = f"{option}={requested} has no effect: the value is {holds or OFF}"
    return f"{text}; it depends on {described}" if described else text


def _lost(option: str, why: str, source: Source | None) -> ThalwegError:
    if source:
        hint = "correct its name, enable its dependencies in the same file, or remove the line"
    else:
        hint = "the engine requires it: thalweg supports Linux 6.1 and later with user-mode Linux"
    return ThalwegError("config-lost", why, place=option, source=source, hint=hint)


def _described(tree: Path, options: set[str]) -> Iterator[tuple[str, str]]:
    """Search a tree's Kconfig files for options; yield each option that exists, with its dependencies."""
    names = "|".join(option.removeprefix("CONFIG_") for option in options)
    entry = re.compile(rf"^(?:menu)?config ({names})\n((?:[ \t].*\n|\n)*)", flags=re.MULTILINE)
    for folder, folders, file_names in os.walk(tree):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in file_names:
            if file.startswith("Kconfig"):
                text = Path(folder, file).read_text(encoding="utf-8", errors="replace")
                for name, body in entry.findall(text):
                    needs = re.findall(r"^\s+depends on (.*)", body, flags=re.MULTILINE)
                    yield f"CONFIG_{name}", " and ".join(needs)


def _malformed(name: str, number: int, line: str, expected: str) -> ThalwegError:
    return ThalwegError(
        "bad-config", f"`{line}` is not an option", place="--config", expected=expected, source=Source(name, number)
    )
