"""Tests `thalweg advise` on planted truths; writes tests/vectors/planted_truths.json and the table in advice.md.

    python tools/planted_truths.py               every truth, a hundred seeds each, in one process
    python tools/planted_truths.py --truth tiny  one of them
    python tools/planted_truths.py --seeds 3     a quick test: prints the table, writes nothing
    python tools/planted_truths.py --table       writes the table again, from the stored numbers

A trial is one seed: records as `thalweg synth cdn --truth NAME --seed N --days 1` writes them, judged as `thalweg
advise --by class` does. Starting a command takes longer than counting the rows of one seed, so several seeds are
evaluated together: each seed is a machine, and parts are by machine and class. Seeds are not compared with each other,
and the p-values of each seed are adjusted separately, so that each trial is judged as if it were alone.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from thalweg import synth  # noqa: E402
from thalweg.advise import DuckDb, Part, Question, advise  # noqa: E402
from thalweg.advise.counting.rows import COLUMNS  # noqa: E402
from thalweg.advise.judgement import cautions, comparing  # noqa: E402
from thalweg.synth import fleet  # noqa: E402
from thalweg.synth.pieces import pieces  # noqa: E402
from thalweg.synth.planted import PLANTED  # noqa: E402

NUMBERS = ROOT / "tests" / "vectors" / "planted_truths.json"
PAGE = ROOT / "docs" / "concepts" / "advice.md"
BEGIN, END = "<!-- Made by tools/planted_truths.py: do not edit. -->\n", "<!-- End of what it made. -->\n"
FORMAT = 1

SEEDS = 100
TOGETHER = 4_000_000
"""Maximum number of rows that are counted together: those of about thirty seeds."""
ROWS = {
    "none": 40_000,
    "none-by-path": 40_000,
    "tiny": 322_000,
    "reversed": 40_000,
    "paradox": 40_000,
    "correlated": 120_000,
}
"""Number of rows per truth. With 322,000 rows each algorithm has 100,000 transfers; with 40,000, seven of twelve
combinations of class and metric can be evaluated. The clusters of `correlated` must be so large that ignoring them
causes errors.
"""
BY_PATH = {"none-by-path": "none"}
"""Truths that are evaluated by round-trip time and retransmissions. These classes depend on the records of a seed, so
each seed is run separately.
"""
OF_THE_WHOLE = ("tiny", "paradox")
"""Truths for which the verdict on the total is evaluated as well."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Look:
    """The verdict on a combination of class and metric that could be evaluated, and the truth."""

    is_within: bool
    """Whether the interval contains the truth."""
    named: str | None
    """Algorithm that the verdict names as better, if any."""
    better: str | None
    """The algorithm that is better; None if they do not differ."""

    @property
    def is_false(self) -> bool:
        """Whether the verdict names an algorithm that is not better."""
        return self.named is not None and self.named != self.better


@dataclass(frozen=True)
class Trial:
    """Results of one seed."""

    looks: Sequence[Look]
    least: int
    """Number of transfers of the algorithm with fewer transfers."""
    whole: str = ""
    """Verdict on the total, if requested."""
    is_called_paradox: bool = False


def main() -> int:
    """Compute the results and the table."""
    parser = argparse.ArgumentParser(description="Test the advice on planted truths.")
    parser.add_argument("--truth", choices=[*ROWS], action="append", help="run only this truth; keep the other results")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help=f"seeds per truth; results are stored only with {SEEDS}"
    )
    parser.add_argument("--table", action="store_true", help="write the table from the stored results")
    chosen = parser.parse_args()
    if not chosen.table:
        wanted = chosen.truth or [*ROWS]
        results = {truth: summed_up(truth, trials(truth, range(1, chosen.seeds + 1), verbose=True)) for truth in wanted}
        if chosen.seeds != SEEDS:
            print(table(results))
            return 0
        previous = read() if NUMBERS.exists() else {}
        merged = {truth: (previous | results)[truth] for truth in ROWS if truth in previous | results}
        content = {"format": FORMAT, "seeds": SEEDS, "truths": merged}
        NUMBERS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
    return 0


def read() -> dict[str, Any]:
    """Return the stored results, by truth."""
    truths: dict[str, Any] = json.loads(NUMBERS.read_text(encoding="utf-8"))["truths"]
    return truths


def with_table(page: str, results: Mapping[str, Any]) -> str:
    """Return the page with the table inserted."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}\n\n{END}{after}"


def trials(truth: str, seeds: Sequence[int], rows: int | None = None, *, verbose: bool = False) -> list[Trial]:
    """Run the trials of a truth with some seeds."""
    results: list[Trial] = []
    rows = rows or ROWS[truth]
    together = max(1, TOGETHER // rows)
    for first in range(0, len(seeds), together):
        batch = seeds[first : first + together]
        with tempfile.TemporaryDirectory(prefix="thalweg-planted-") as name:
            for seed in batch:
                _write(synth.Settings(rows, seed, 1, BY_PATH.get(truth, truth)), Path(name))
            results += _judged(truth, Path(name), batch)
        if verbose:
            print(f"{truth}: {len(results)} of {len(seeds)} seeds", file=sys.stderr, flush=True)
    return results


def _write(settings: synth.Settings, folder: Path) -> None:
    """Write the records of a seed into one file, with the seed as the machine's name."""
    world = synth.make(settings)
    frame = pa.concat_tables(table for piece in pieces(settings) for table in fleet.tables(world, piece))
    machine = pa.array([_machine(settings.seed)] * len(frame), pa.string())
    frame = frame.set_column(frame.schema.get_field_index("machine"), "machine", machine)
    frame = frame.select([*COLUMNS, "connection", "machine"])
    pq.write_table(frame, folder / f"{_machine(settings.seed)}.parquet", compression="none", store_schema=False)


def _machine(seed: int) -> str:
    return f"seed-{seed}"


def _judged(truth: str, folder: Path, seeds: Sequence[int]) -> Iterator[Trial]:
    """Evaluate the records of some seeds, and separate the results."""
    if truth in BY_PATH:
        for seed in seeds:
            parts = advise([folder / f"{_machine(seed)}.parquet"], Question(), engine=_engine).parts
            yield _trial(truth, parts, Question())
        return
    prefixes = folder / synth.PREFIXES
    prefixes.write_text(fleet.prefixes(), encoding="utf-8")
    question = Question(segments=("machine", "class"))
    by_class = advise([folder], question, table=prefixes, engine=_engine).parts
    whole_question = Question(segments=("machine",))
    wholes = advise([folder], whole_question, engine=_engine).parts if truth in OF_THE_WHOLE else ()
    for machine in map(_machine, seeds):
        parts = comparing.with_verdicts([part for part in by_class if part.names[0] == machine], question)
        result = _trial(truth, parts, question)
        for overall in comparing.with_verdicts([part for part in wholes if part.names[0] == machine], question):
            codes = [caution.code for caution in cautions.of_parts(parts, overall, question)]
            verdict = comparing.without_paradox(overall, parts).verdict
            result = replace(result, whole=verdict, is_called_paradox="paradox" in codes)
        yield result


def _trial(truth: str, parts: Sequence[Part], question: Question) -> Trial:
    differences = [
        difference.difference for part in parts for difference in part.comparisons.values() if difference.difference
    ]
    return Trial(
        [look for part in parts for look in _looks(truth, part, question)],
        min(
            sum(difference.treatment.n for difference in differences),
            sum(difference.control.n for difference in differences),
        ),
    )


def _engine() -> DuckDb:
    """Return an engine with one thread, because a second thread saves little time with so few rows."""
    return DuckDb(threads=1)


def _looks(truth: str, part: Part, question: Question) -> Iterator[Look]:
    """Compare the verdict on a class with the planted truth: one ratio of all its completion times."""
    arms = (question.treatment, question.control)
    ratio = PLANTED[BY_PATH.get(truth, truth)].ratios.get(part.names[1], 1.0)
    better = None if ratio == 1 else arms[0] if ratio < 1 else arms[1]
    for metric, comparison in part.comparisons.items():
        effect = comparison.difference.median if comparison.difference else None
        if effect is not None and comparison.p_adjusted is not None:
            planted = ratio if metric == "completion_time" else 1 / ratio
            named = comparison.verdict if comparison.verdict in arms else None
            yield Look(effect.overlaps(planted), named, better)


def summed_up(truth: str, tried: Sequence[Trial]) -> dict[str, Any]:
    """Return the counts over all seeds."""
    looks = [look for trial in tried for look in trial.looks]
    real = [look for look in looks if look.better is not None]
    return {
        "rows": ROWS[truth],
        "least": round(sum(trial.least for trial in tried) / len(tried)),
        "looks": len(looks),
        "within": sum(look.is_within for look in looks),
        "named": sum(look.named is not None for look in looks),
        "false": sum(look.is_false for look in looks),
        "false_shares": [round(false_share(trial), 4) for trial in tried],
        "real": len(real),
        "found": sum(look.named == look.better for look in real),
        **(of_the_whole(tried) if truth in OF_THE_WHOLE else {}),
    }


def of_the_whole(tried: Sequence[Trial]) -> dict[str, Any]:
    """Return the counts of verdicts on the total."""
    wholes = [trial.whole for trial in tried]
    return {
        "whole": {verdict: wholes.count(verdict) for verdict in sorted(set(wholes))},
        "called_paradox": sum(trial.is_called_paradox for trial in tried),
    }


def false_share(trial: Trial) -> float:
    """Return the fraction of false verdicts among those that name an algorithm; 0 if none does. The documented bound
    applies to its mean.
    """
    named = sum(look.named is not None for look in trial.looks)
    return sum(look.is_false for look in trial.looks) / named if named else 0.0


def at_least(hits: int, of: int) -> float:
    """Return the lower end of the 95 % interval of a fraction (Clopper and Pearson 1934).

    >>> round(at_least(100, 100), 3), at_least(0, 100)
    (0.964, 0.0)
    """
    return float(stats.beta.ppf((1 - CONFIDENCE) / 2, hits, of - hits + 1)) if hits else 0.0


def at_most(hits: int, of: int) -> float:
    """Return the upper end of the 95 % interval of a fraction (Clopper and Pearson 1934).

    >>> round(at_most(0, 100), 3), at_most(100, 100)
    (0.036, 1.0)
    """
    return float(stats.beta.ppf((1 + CONFIDENCE) / 2, hits + 1, of - hits)) if hits < of else 1.0


def table(results: Mapping[str, Any]) -> str:
    """Return the table as Markdown."""
    heads = (
        "Truth",
        "Transfers per algorithm",
        "Parts and metrics judged",
        "Intervals that contain the truth",
        "Verdicts that name an algorithm",
        "False among these, mean over seeds",
        "Real differences found",
        "Verdict on the total",
    )
    lines = [f"| {' | '.join(heads)} |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    for truth, result in results.items():
        share = sum(result["false_shares"]) / len(result["false_shares"])
        part = f"{result['found'] / result['real']:.0%}" if result["real"] else ""
        real = f"{result['found']:,} of {result['real']:,} ({part})" if result["real"] else "none planted"
        verdicts = ", ".join(f"{verdict}: {count}" for verdict, count in result.get("whole", {}).items())
        overall = verdicts or "not computed"
        cells = (truth, f"{result['least']:,}", f"{result['looks']:,}", f"{result['within'] / result['looks']:.1%}",
                 f"{result['named']:,}", f"{share:.1%}", real, overall)  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
