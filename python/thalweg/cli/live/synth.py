"""`thalweg synth`: synthetic records, with their truth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli import helped, typed
from thalweg.cli.printing import output
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg.plan import Plan
    from thalweg.run import Outcome
    from thalweg.synth import Fleet, PathClass, Settings, Written

EPILOG = "Example: thalweg synth cdn --rows 1000000 --out synthetic"

commands = typer.Typer(
    help="Write synthetic records of servers, with known true effects.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

RUNS = "-runs"
"""Suffix of the folder with the simulator's runs, beside that of the records."""


@commands.callback()
def _group() -> None:
    pass


@commands.command("cdn", cls=helped.Command, epilog=EPILOG)
def cdn(
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Number of rows.", min=1)] = 1_000_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.", min=0)] = 1,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for the records, without any yet; created if missing. Simulator runs go to DIR-runs.",
        ),
    ] = Path("synth-cdn"),
    days: Annotated[int, typer.Option("--days", metavar="N", help="Days that the records span.", min=1, max=366)] = 7,
    truth: Annotated[
        str,
        typer.Option(
            "--truth",
            metavar="NAME",
            help="True effect of BBR: simulated, none, tiny (5 % less time), reversed (slower for some classes, faster"
            " for others), paradox (Simpson's) or correlated (none, but the connections of a client resemble each"
            " other).",
        ),
    ] = "simulated",
    design: Annotated[
        str, typer.Option("--design", metavar="NAME", help="Assignment of BBR: ab, before-after or switchback.")
    ] = "ab",
    quick: Annotated[
        bool, typer.Option("--quick", help="With --truth simulated: simulate fewer connections to draw from.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write synthetic records of a CDN.

    The connections are those of clients of a wireless and of a wireline provider and of two networks far away, and the
    CDN's own traffic between and within its points of presence, each with CUBIC or BBR. With --truth simulated, the
    simulator runs connections and the rows are drawn from these; otherwise times follow a formula. truth.json has the
    true differences of the algorithms, to compare estimates with; prefixes.csv maps networks to their AS.
    docs/reference/synth.md has the details.
    """
    from thalweg import synth

    settings = synth.Settings(rows=rows, seed=seed, days=days, truth=truth, design=design)
    synth.check(settings)
    synth.check_free(out)
    if quick and truth != synth.SIMULATED:
        raise ThalwegError(
            "bad-usage",
            f"--quick has no effect: the truth `{truth}` does not use the simulator",
            place="--quick",
            hint="leave it out",
        )
    fleet = _fleet(settings, out, quick=quick)
    output.talk(f"writing {rows} rows")
    _print(synth.write(fleet, out), fleet, out, as_json=as_json)


def _fleet(settings: "Settings", out: Path, *, quick: bool) -> "Fleet":
    from thalweg import synth

    pools = None
    if settings.truth == synth.SIMULATED:
        pools = synth.simulate(runs_beside(out), quick=quick, runner=_run)
    return synth.make(settings, pools)


def runs_beside(out: Path) -> Path:
    """Return the folder of the simulator's runs, beside the folder of the records.

    >>> runs_beside(Path("made/up"))
    PosixPath('made/up-runs')
    """
    folder = out if out.name not in ("", "..") else out.resolve()
    return folder.with_name(folder.name + RUNS)


def _run(kind: "PathClass", plan: "Plan", folder: Path, binary: Path) -> "Outcome":
    from thalweg.run import Progress, execute

    with Progress(output.console(), title=kind.name) as progress:
        return execute(plan, folder, binary=binary, command=typed.words(), listener=progress.event)


def _print(written: "Written", fleet: "Fleet", out: Path, *, as_json: bool) -> None:
    from thalweg import synth

    truth, prefixes = out / synth.TRUTH, out / synth.PREFIXES
    if as_json:
        output.data_json(
            {
                "records": str(written.folder),
                "files": written.files,
                "rows": written.rows,
                "truth": str(truth),
                "prefixes": str(prefixes),
            }
        )
        return
    output.data(f"records   {written.folder} ({written.rows} rows in {written.files} files)")
    output.data(f"truth     {truth}")
    output.data(f"prefixes  {prefixes}")
    description = synth.PLANTED[fleet.settings.truth].about if fleet.settings.truth in synth.PLANTED else ""
    if description:
        output.talk(f"the truth: {description}")
