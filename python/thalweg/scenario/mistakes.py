"""Collects mistakes that the rules find, at one point of a scenario's sweep or in another TOML file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from thalweg.errors import Source, ThalwegError
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.text import words


@dataclass(frozen=True)
class Mistake:
    """A mistake without its line."""

    code: str
    key_path: KeyPath
    message: str
    found: str | None = None
    expected: str | None = None
    hint: str | None = None
    instead: tuple[str, ...] = ()
    """Addresses of the missing key, and of other keys or tables that would do as well."""

    def error(self, name: str, source: Source, suffix: str = "") -> ThalwegError:
        """Return the mistake as an error; `name` is its key path as users write it."""
        return ThalwegError(
            self.code,
            self.message + suffix,
            place=name,
            found=self.found,
            expected=self.expected,
            hint=self.hint,
            source=source,
        )


@dataclass
class Mistakes:
    """The mistakes of one file, or of one point of a sweep."""

    entries: list[Mistake] = field(default_factory=list)
    errors: list[ThalwegError] = field(default_factory=list)
    """Mistakes in files that the checked file refers to."""

    def add(
        self,
        code: str,
        key_path: KeyPath,
        message: str,
        *,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add a mistake at a key path."""
        self.entries.append(Mistake(code, key_path, message, found, expected, hint))

    def add_missing(
        self, key_path: KeyPath, message: str, *, expected: str, hint: str, instead: tuple[str, ...]
    ) -> None:
        """Add a missing key; it counts as present if an unknown key was probably meant to be one of `instead`."""
        self.entries.append(Mistake("missing-key", key_path, message, None, expected, hint, instead))

    def add_unknown(self, key_path: KeyPath, kind: str, name: str, choices: Sequence[str]) -> None:
        """Add a name that is not a valid choice."""
        self.add(
            f"unknown-{kind.replace(' ', '-')}",
            key_path,
            f"`{dotted(key_path)}` names an unknown {kind}: `{name}`",
            found=name,
            expected=words.one_of(choices) if choices else f"a {kind}, but none is defined",
            hint=words.did_you_mean(name, choices),
        )

    def add_error(self, error: ThalwegError) -> None:
        """Add a mistake that has its own position."""
        self.errors.append(error)


def by_line(errors: Iterable[ThalwegError]) -> list[ThalwegError]:
    """Sort errors by their line in the file."""
    return sorted(errors, key=lambda error: (error.source and error.source.line) or 0)
