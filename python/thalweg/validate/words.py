"""Formats errors and values of a comparison, for tables and the page."""

from thalweg import printable
from thalweg.validate.compare import GridCell
from thalweg.validate.errors import ERRORS
from thalweg.validate.goals import JudgedGoal

ALL_FLOWS = "(all)"
"""Name of the path in place of a flow."""

NOISE = "~"
"""Prefix of an error within the uncertainty of the repetitions."""


def error(measure: str, value: float | None) -> str:
    """Return an error with its sign as text.

    >>> error("goodput", -0.123), error("share", 0.05), error("retransmit_ratio", 2.0), error("goodput", None)
    ('-12.3 %', '+5.0 pts', 'x2.00', '-')
    >>> error("goodput", -0.0004)
    '0.0 %'
    """
    if value is None:
        return "-"
    return _written(measure, value, "+")


def size(measure: str, value: float) -> str:
    """Return the magnitude of an error as text.

    >>> size("rtt_mean", 0.1), size("retransmit_ratio", 1.5), size("share", 0.07)
    ('10.0 %', 'x1.50', '7.0 points')
    """
    return _written(measure, value, "").replace("pts", "points")


def value(measure: str, number: float | None) -> str:
    """Return a value with its unit as text.

    >>> value("goodput", 19.25e6), value("rtt_mean", 0.0412), value("share", 0.512), value("completion_time", 1.5)
    ('19.2 Mbit/s', '41.2 ms', '51.2 %', '1.50 s')
    >>> value("retransmit_ratio", 0.00123), value("goodput", None)
    ('0.123 %', '-')
    """
    if number is None:
        return "-"
    if measure == "goodput":
        return f"{number / 1e6:.3g} Mbit/s" if number < 1e6 else f"{number / 1e6:.1f} Mbit/s"
    if measure in ("rtt_mean", "completion_time"):
        return f"{number * 1e3:.1f} ms" if number < 1 else f"{number:.2f} s"
    return f"{number * 100:.3f} %" if measure == "retransmit_ratio" else f"{number * 100:.1f} %"


def short(key: str) -> str:
    """Return a swept key without its common prefix.

    >>> short("path.buffer"), short("flow.solo.cc"), short("host.sender.cpu_share")
    ('buffer', 'solo.cc', 'host.sender.cpu_share')
    """
    return key.removeprefix("path.").removeprefix("flow.")


def place(cell: GridCell) -> str:
    """Return the position of a cell in the grid, in one line."""
    return " ".join(
        [cell.scenario, *(f"{short(key)}={printable.plain(swept_value)}" for key, swept_value in cell.point.items())]
    )


def flow(cell: GridCell) -> str:
    """Return the flow of a cell as text."""
    return ALL_FLOWS if cell.flow is None else cell.flow


def limit(judged: JudgedGoal) -> str:
    """Return the limit of a goal as text."""
    return f"{judged.goal.statistic} <= {size(judged.goal.measure, judged.goal.limit)}"


def found(judged: JudgedGoal) -> str:
    """Return the result of a goal as text."""
    return "-" if judged.found is None else size(judged.goal.measure, judged.found)


def _written(measure: str, number: float, sign: str) -> str:
    kind = ERRORS[measure].kind
    if kind == "factor":
        return f"x{number:.2f}"
    hundredths = round(number * 100, 1) + 0.0  # -0.0 + 0.0 is 0.0, which avoids the sign of a negative zero
    return f"{hundredths:{sign if hundredths else ''}.1f} {'%' if kind == 'relative' else 'pts'}"
