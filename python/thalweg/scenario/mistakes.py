"""Collects what the rules find at one point of the sweep."""

from dataclasses import dataclass, field

from thalweg.errors import ThalwegError
from thalweg.scenario.positions import Place


@dataclass(frozen=True)
class Mistake:
    """A mistake that does not know yet in which line it is."""

    code: str
    place: Place
    message: str
    found: str | None = None
    expected: str | None = None
    hint: str | None = None
    instead: tuple[str, ...] = ()
    """Addresses, or tables, that would make good what is missing."""


@dataclass
class Mistakes:
    """The mistakes of one point."""

    found: list[Mistake] = field(default_factory=list)
    errors: list[ThalwegError] = field(default_factory=list)
    """Mistakes in other files than the scenario."""

    def add(
        self,
        code: str,
        place: Place,
        message: str,
        *,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
        instead: tuple[str, ...] = (),
    ) -> None:
        """Note a mistake at a place of the scenario."""
        self.found.append(Mistake(code, place, message, found, expected, hint, instead))

    def add_error(self, error: ThalwegError) -> None:
        """Note a mistake that has its own place."""
        self.errors.append(error)
