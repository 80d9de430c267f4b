"""Settings of synthetic records."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from thalweg.errors import ThalwegError
from thalweg.scenario.text import words
from thalweg.synth.planted import PLANTED

SIMULATED = "simulated"
"""Name of the truth that is not planted: the simulator's results of both algorithms on the same paths."""
TRUTHS = (SIMULATED, *PLANTED)

AB = "ab"
BEFORE_AFTER = "before-after"
SWITCHBACK = "switchback"
DESIGNS = (AB, BEFORE_AFTER, SWITCHBACK)

FIRST_DAY = datetime(2026, 1, 5, tzinfo=UTC)
"""The first day, a Monday; constant, so that the same command writes the same bytes."""

SIZE_LIMIT_BYTES = 3_000_000
"""Size limit between completion times and throughputs, as in Shah (2019)."""


@dataclass(frozen=True)
class Settings:
    """Settings of synthetic records."""

    rows: int = 1_000_000
    seed: int = 1
    days: int = 7
    truth: str = SIMULATED
    design: str = AB

    @property
    def activation(self) -> datetime | None:
        """Start of the treatment, at midnight of the middle day; None: the design has no activation."""
        return FIRST_DAY + timedelta(days=self.activation_day) if self.design == BEFORE_AFTER else None

    @property
    def activation_day(self) -> int:
        """Index of the day from which on all connections have the treatment (before-after)."""
        return self.days // 2


def check(settings: Settings) -> None:
    """Check that the settings are valid.

    Raises:
        ThalwegError: If the truth or the design is unknown, they cannot be combined, or days are too few.
    """
    _one_of("--truth", settings.truth, TRUTHS)
    _one_of("--design", settings.design, DESIGNS)
    truth = PLANTED.get(settings.truth)
    if truth is not None and truth.is_about_arms and settings.design != AB:
        raise ThalwegError(
            "bad-usage",
            f"both the truth `{settings.truth}` and --design {settings.design} determine the assignment of algorithms",
            place="--design",
            expected=f"--design {AB}",
            hint=f"remove --design, or choose another truth: {', '.join(_free())}",
        )
    if settings.design == BEFORE_AFTER and settings.days < 2:
        raise ThalwegError(
            "bad-usage",
            "one day has no midnight between control and treatment",
            place="--days",
            found=f"--days {settings.days}",
            expected="two days or more",
            hint="--days 2",
        )


def _free() -> list[str]:
    return [name for name in TRUTHS if name not in PLANTED or not PLANTED[name].is_about_arms]


def _one_of(flag: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ThalwegError(
            "bad-usage",
            f"there is no {flag.removeprefix('--')} `{value}`",
            place=flag,
            found=value,
            expected=f"one of {', '.join(choices)}",
            hint=words.did_you_mean(value, choices) or f"{flag} {choices[0]}",
        )
