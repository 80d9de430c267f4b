"""`thalweg compare`: finds the real differences between two runs, or within one."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thalweg.cli.options import option
from thalweg.cli.printing import comparison_output, evidence, output
from thalweg.errors import Exit, ThalwegError

if TYPE_CHECKING:
    from thalweg.analysis import Comparison
    from thalweg.results import Run

FailOn = Literal["different", "worse"]

MAX_ALONE = 5

EPILOG = "Example: thalweg compare runs/before runs/after --tolerance 5%"


def command(
    first: Annotated[
        Path, typer.Argument(metavar="A", help="Run directory; with --kernel, a scenario.", show_default=False)
    ],
    second: Annotated[
        Path | None, typer.Argument(metavar="B", help="Another run directory.", show_default=False)
    ] = None,
    by: Annotated[
        str | None,
        option(
            "--by", "KEY", "Compare points within A: the first value of this key of the sweep with each of the others."
        ),
    ] = None,
    measures: Annotated[
        list[str] | None,
        option("--measure", "NAME", "Measure to compare; can be repeated. [default: a standard selection]"),
    ] = None,
    flows: Annotated[
        list[str] | None,
        option("--flow", "NAME", "Flow to compare; can be repeated. [default: all flows, and the path]"),
    ] = None,
    kernels: Annotated[
        list[str] | None,
        option(
            "--kernel",
            "IMAGE",
            "Guest kernel, given twice: the scenario A is run with the engine vm on both first. An image (bzImage), or"
            " a name from `thalweg kernel list`.",
        ),
    ] = None,
    modules: Annotated[
        list[Path] | None,
        option("--modules", "DIR", "Folder with the modules of a kernel image, in the order of the images."),
    ] = None,
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance",
            metavar="PERCENT",
            help="Largest change that is ignored, such as 5%; of fractions, such as share, in percentage points.",
        ),
    ] = "0%",
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="Which real differences lead to exit code 1: all (different), or only those worse in B (worse).",
        ),
    ] = "different",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 8 instead of 0 if rows are undecided: too few repetitions, or repetitions without random"
            " variation and a change larger than the tolerance.",
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Print every row, not only the largest real differences.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as JSON.")] = False,
) -> None:
    """Compare runs, and report which differences are real.

    Compares two runs point by point: the same scenario on two engines, two kernels or two versions, or with a key
    changed. With --by, one run is compared with itself. Changes have 95 % intervals. A difference is real if it is
    larger than the tolerance, and significant after correction for the number of rows (docs/reference/analysis.md).

    Exit code 1 if there is a real difference; with --fail-on worse, only if B is worse (never for measures that are
    neither good nor bad, such as share). Otherwise 5 if no row has a verdict, as with too few repetitions. (Identical
    repetitions count if all changes are within the tolerance.) Otherwise 6 if experiments were excluded (untrustworthy,
    failed, unfinished), or a measure or flow of --measure or --flow was not compared; else 0. What only one run has is
    listed, and does not change the code.
    """
    if kernels or modules:
        if second is not None or by is not None:
            raise ThalwegError("bad-usage", "--kernel cannot be combined with B or --by", place="--kernel")
        from thalweg.cli.commands import two_kernels

        limit = _tolerance(tolerance)
        first, second = two_kernels.run_both(first, kernels or [], modules or [])
    if (second is None) == (by is None):
        raise ThalwegError(
            "bad-usage",
            "there is nothing to compare with" if by is None else "B and --by cannot be combined",
            expected="two run directories, or one and --by KEY",
            hint=f"thalweg compare {first} OTHER" if by is None else f"thalweg compare {first} --by {by}",
        )
    limit = _tolerance(tolerance)
    from thalweg import analysis
    from thalweg.results import open_run

    runs = [open_run(directory) for directory in (first, second) if directory is not None]
    if second is not None:
        _check_distinct(first, second)
    other = runs[1] if second else None
    comparison = analysis.compare(runs[0], other, by=by, measures=measures or (), flows=flows or (), tolerance=limit)
    # Copies of one another, which do not vary, have no verdict. If they agree with those of the other side, nothing has
    # changed.
    changed_copies = [row for row in comparison.of("copies") if row.size > limit]
    can_judge = comparison.has_verdicts or bool(comparison.of("copies") and not changed_copies)
    code, cautions = _evidence(runs, comparison, [*(measures or ()), *(flows or ())], can_judge=can_judge)
    if as_json:
        output.data_json(comparison_output.as_json(runs, comparison, by, limit, code, cautions))
    else:
        comparison_output.show(runs, comparison, by, limit, every=every, worse_first=fail_on == "worse")
        _talk_of(cautions, comparison.alone)
    failing = [row for row in comparison.real if fail_on == "different" or row.is_worse]
    if failing:
        code = Exit.FAILED
    elif strict and code == Exit.FINE and (comparison.of("too few") or changed_copies):
        code = Exit.NOT_SETTLED
    raise typer.Exit(code)


def _check_distinct(first: Path, second: Path) -> None:
    if first.samefile(second):
        raise ThalwegError(
            "bad-usage",
            "A and B are the same run directory",
            found=f"`{first}`" if first == second else f"`{first}` and `{second}`, which are `{first.resolve()}`",
            expected="two run directories, or one and --by KEY",
            hint="to run the scenario into another directory: thalweg run FILE --out DIR",
        )


def _tolerance(text: str) -> float:
    number, is_percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        value = float(number) / (100 if is_percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (value >= 1 and not is_percent):
        raise ThalwegError(
            "bad-usage",
            f"`{text}` is not a percentage",
            place="--tolerance",
            found=f"`{text}`",
            expected="a percentage, or a ratio below 1",
            hint=f"--tolerance {number if 1 <= value < math.inf else 5}%",
        )
    return value


def _evidence(
    runs: Sequence["Run"], comparison: "Comparison", requested: Sequence[str], *, can_judge: bool
) -> tuple[Exit, list[str]]:
    """Return the exit code if no real difference was found, and the cautions about the comparison."""
    from thalweg import analysis

    codes, cautions = [Exit.FINE if can_judge else Exit.NO_EVIDENCE], []
    for name, run in zip("AB", runs, strict=False):
        codes.append(evidence.code(analysis.evidence(run)))
        cautions += [f"{name}: {caution}" for caution in analysis.cautions(run)]
    compared = {name for row in comparison.rows for name in (row.measure, row.flow)}
    if missed := [name for name in dict.fromkeys(requested) if name not in compared]:
        codes.append(Exit.INCOMPLETE)
        cautions.append(f"{', '.join(missed)}: not compared, because no point has a value on both sides")
    return evidence.worst(codes), cautions


def _talk_of(cautions: Sequence[str], alone: Sequence[str]) -> None:
    for caution in cautions:
        output.talk(caution)
    left_out = list(dict.fromkeys(alone))
    for line in left_out[:MAX_ALONE]:
        output.talk(f"not compared: {line}")
    if len(left_out) > MAX_ALONE:
        output.talk(f"not compared: {len(left_out) - MAX_ALONE} more")
