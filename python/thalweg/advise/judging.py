"""Computes an answer from records: an engine counts, and this module evaluates the counts.

Parts with enough samples are fetched in batches, to limit memory.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from ibis.expr.types import Table

from thalweg.advise.answers import rollout
from thalweg.advise.answers.answer import Age, Answer, Caution, Part, Since, Sized
from thalweg.advise.answers.headline import headline
from thalweg.advise.counting import counts, keys, parts, prefixes
from thalweg.advise.counting import overview as overviews
from thalweg.advise.counting import places as locating
from thalweg.advise.counting import rows as reading
from thalweg.advise.counting.arms import GROUPS, TREATMENT
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.places import Places
from thalweg.advise.counting.segments import KNOWN, MAP, Dimension, PartValues, dimensions
from thalweg.advise.judgement import ages, cautions, comparing, network_cautions, since, timeline
from thalweg.advise.judgement import samples as sampling
from thalweg.advise.judgement.comparing import Counted
from thalweg.advise.question import Question
from thalweg.advise.statistics import network_counts
from thalweg.advise.statistics.effects import QUANTILES, Bootstrap, difference
from thalweg.advise.statistics.network_counts import OfParts
from thalweg.errors import Exit, ThalwegError
from thalweg.records.find import FoundFiles
from thalweg.records.sizes import SIZES
from thalweg.records.where import check_columns, text

MAX_CELLS = 4_000_000
"""Approximate number of count rows that are fetched at once."""
CELLS = 600
"""Typical upper bound of the number of buckets of one metric, arm and group."""

Namer = Callable[[pl.Series], Mapping[int, PartValues]]
"""Returns the values of parts in each dimension, by the numbers of the parts."""


@dataclass(frozen=True)
class _Judged:
    parts: list[Part]
    too_small: int = 0
    too_small_n: int = 0
    are_balanced: bool = False


@dataclass(frozen=True)
class _Samples:
    engine: QueryEngine
    question: Question
    chosen: Sequence[Dimension]
    places: Places
    table: Table
    networks: OfParts
    bootstrap: Bootstrap

    @property
    def have_parts_within_networks(self) -> bool:
        """Whether the bootstrap resamples hours, because each part lies within one network and no cluster is set."""
        question = self.question
        is_free = question.cluster is None and question.design.name == "ab"
        return is_free and network_counts.are_within_one(self.chosen)

    def fetch(self, query: Table, names: Mapping[str, int], *, by_part: bool = False) -> pl.DataFrame:
        """Execute a query, and unpack its keys."""
        return counts.unpacked_keys(self.engine.fetch(query), names, by_part=by_part)


def judge(engine: QueryEngine, files: FoundFiles, question: Question, table: Path | None = None) -> Answer:
    """Answer a question from files of records; `table` is the user's table of networks.

    Raises:
        ThalwegError: If the question or the table does not fit the records.
        QueryFailed: If a query fails.
    """
    of_table = prefixes.columns(table) if table else set()
    columns = reading.column_names(files.files)
    check_columns(question.where, columns)
    chosen = dimensions(question.segments, columns, of_table)
    of_records = [dimension.name for dimension in chosen if dimension.of == "records"]
    unit = question.design.unit
    if unit is not None and unit not in columns:
        raise ThalwegError(
            "no-unit",
            f"the records have no column `{unit}`",
            place="--turns-of",
            expected="a column of the records, or a KEY of folders named KEY=VALUE, such as pop or machine",
        )
    more = list(dict.fromkeys([*of_records, *([unit] if unit else [])]))
    rows = reading.rows(engine, files.files, more, where=question.where)
    overview = overviews.overview(engine, rows.all, question)
    comparable = sampling.comparable_rows(engine, rows.all, question, overview)
    places = locating.places(engine, comparable, table, chosen, unit)
    if not places.n:
        raise _nothing(question, overview)
    settled = _settled(question, places)
    sampled = sampling.samples(engine, comparable, places, settled, chosen, overview)
    networks = network_counts.described(engine, places, chosen, question.least_samples)
    samples = _Samples(engine, settled, chosen, places, sampled, networks, Bootstrap(settled))
    rows_for_ages = rows
    if overview.rows > sampling.LOOKED_AT and len(files.files) >= reading.MANY_FILES:
        rows_for_ages = reading.rows(engine, reading.some_of(files.files), more, "ages", question.where)
    return _assemble(samples, files, overview, _count(samples, rows_for_ages, overview), question)


def _settled(question: Question, places: Places) -> Question:
    """Use networks as clusters if the assignment was by network, unless the user selected the clusters."""
    if question.cluster is None and question.design.name == "ab" and cautions.are_assigned_as_a_whole(places):
        return replace(question, cluster="prefix")
    return question


@dataclass(frozen=True)
class _Overall:
    overall: Part
    sizes: list[Sized]
    by_class: _Judged
    of_map: _Judged
    """By the requested dimensions, if these are the map's; the total if none is requested."""


@dataclass(frozen=True)
class _Findings:
    n: int
    whole: _Overall
    parts: _Judged
    meetings: Mapping[str, int]
    """The row of `counts.meetings`; in designs other than A/B only n, which is 0."""
    ages: list[Age]
    since: list[Since]
    over_time: pl.DataFrame
    of_time: list[Caution]


def _count(samples: _Samples, rows_for_ages: reading.Rows, overview: overviews.Overview) -> _Findings:
    """Run the queries and evaluate their counts; `_overall` runs in a separate thread during the other queries."""
    engine, question, sampled = samples.engine, samples.question, samples.table
    strata = samples.fetch(counts.strata(sampled), {**keys.ARM, **keys.LOT})
    factors = _factors(strata, (), question)
    weighted = sampled if factors is None else counts.weighted(sampled, engine.put("factors_of_all", factors))
    counted = [
        engine.fetch(query) for query in (counts.mix(sampled), counts.queues(sampled), counts.histogram(weighted))
    ]
    beside = ThreadPoolExecutor(1)
    try:
        judging = beside.submit(_overall, samples, *counted)
        del counted
        judged = _requested(samples, strata, factors)
        meetings = (
            engine.fetch(counts.meetings(sampled)).row(0, named=True) if question.design.name == "ab" else {"n": 0}
        )
        of_ages = list(ages.ages(engine, rows_for_ages, question, samples.bootstrap))
        since_activation = engine.fetch(since.value_counts(sampled))
        of_since = list(since.compared(since_activation, question, samples.bootstrap, sampling.METRICS))
        over_time = timeline.medians(engine.fetch(counts.over_time(sampled, overview.step_us)), overview.step_us)
        overall = judging.result()
    finally:
        beside.shutdown(cancel_futures=True)
    judged = judged or overall.of_map
    of_time = cautions.of_time(strata, question, is_balanced=factors is not None or judged.are_balanced)
    n = int(strata["n"].sum())
    return _Findings(n, overall, judged, meetings, of_ages, of_since, over_time, list(of_time))


def _requested(samples: _Samples, strata: pl.DataFrame, factors: pl.DataFrame | None) -> _Judged | None:
    """Judge the requested parts; None if `_overall` judges them: without dimensions, or for classes of the map without
    balancing.
    """
    engine, names = samples.engine, tuple(dimension.name for dimension in samples.chosen)
    if parts.are_asked(samples.chosen):
        return _parts(samples, lambda numbers: parts.named(engine, samples.places, numbers, samples.chosen))
    if names and not (factors is None and _factors(strata, names, samples.question) is None):
        sampled = samples.table.mutate(part=parts.number_of_map(samples.table["cell"], samples.chosen))
        return _parts(replace(samples, table=sampled), lambda numbers: parts.of_map(numbers, samples.chosen))
    return None


def _assemble(
    samples: _Samples, files: FoundFiles, overview: overviews.Overview, findings: _Findings, asked: Question
) -> Answer:
    question, judged = samples.question, findings.parts
    overall = comparing.without_paradox(findings.whole.overall, judged.parts)
    warnings = [
        *network_cautions.of_networks(judged.parts, overall, question),
        *cautions.of_parts(judged.parts, overall, question),
        *cautions.of_meetings(findings.meetings),
        *cautions.of_assignment(samples.places, asked),
        *cautions.of_contradictions(overview, question),
        *findings.of_time,
    ]
    answer = Answer(
        question=question,
        dimensions=samples.chosen,
        overall=overall,
        parts=judged.parts,
        too_small=judged.too_small,
        too_small_n=judged.too_small_n,
        map=findings.whole.by_class.parts,
        sizes=findings.whole.sizes,
        ages=findings.ages,
        since=findings.since,
        over_time=findings.over_time,
        step_us=overview.step_us,
        cautions=warnings,
        rollout=rollout.steps(judged.parts, findings.n, question),
        files=len(files.files),
        left_out=files.left_out,
        rows=overview.rows,
        untouched=overview.untouched,
        other_algorithms=overview.other_algorithms,
        receiver_limited=overview.receiver_limited,
        without_arm=overview.without_arm,
        n=findings.n,
        first_us=overview.first_us,
        last_us=overview.last_us,
        engine=samples.engine.name,
    )
    return replace(answer, headline=headline(answer))


def _overall(samples: _Samples, mixed: pl.DataFrame, queued: pl.DataFrame, counted: pl.DataFrame) -> _Overall:
    question, bootstrap = samples.question, samples.bootstrap
    names = {**keys.ARM, **keys.GROUP, "size": keys.CLASSES, "bucket": keys.BUCKETS}
    cells = counts.unpacked_keys(counted, names)
    mixes = counts.unpacked_keys(mixed, {**keys.ARM, **keys.GROUP})
    queues = counts.unpacked_keys(queued, keys.GROUP)
    sums = pl.col("n", "weight", "total").sum()
    times = cells.filter(pl.col("metric") == sampling.TIME).group_by("size", "arm", "group", "bucket").agg(sums)
    of_sizes = []
    for number, size in enumerate(SIZES):
        effect = difference(times.filter(pl.col("size") == number), bootstrap, QUANTILES)
        if effect:
            of_sizes.append(Sized(size.title, effect))
    cells = cells.group_by(*MAP, "metric", "arm", "group", "bucket").agg(sums)
    of_all_parts = Counted(cells, mixes, queues)
    of_all: dict[PartValues, Counted] = {(): replace(of_all_parts, networks=samples.networks.of_class((), ()))}
    (overall,) = comparing.with_verdicts(comparing.compare(of_all, [], question, bootstrap, at=QUANTILES), question)
    by_class = _of_map(of_all_parts, MAP, samples)
    requested = tuple(dimension.name for dimension in samples.chosen)
    if not requested:
        of_map = _Judged([overall])
    elif requested == MAP or parts.are_asked(samples.chosen):
        of_map = by_class
    else:
        of_map = _of_map(of_all_parts, requested, samples)
    return _Overall(overall, of_sizes, by_class, of_map)


def _factors(strata: pl.DataFrame, by: tuple[str, ...], question: Question) -> pl.DataFrame | None:
    """Return factors that balance time strata, or the units of a switchback; None if there is nothing to balance."""
    if question.design.name == "switchback":
        return counts.factors_of_units(strata, by) if question.design.unit else None
    are_by_network = question.design.name == "ab" and question.clusters in ("prefix", "prefix-hour")
    return counts.factors(strata, by, are_by_network=are_by_network)


def _of_map(overall: Counted, names: Sequence[str], samples: _Samples) -> _Judged:
    tables = dict(overall.split(names))
    enough: dict[PartValues, Counted] = {
        key: replace(counted, networks=samples.networks.of_class(names, key))
        for key, counted in tables.items()
        if counted.has_enough(samples.question)
    }
    few = [counted.n for key, counted in tables.items() if key not in enough]
    compared = comparing.compare(enough, [KNOWN[name] for name in names], samples.question, samples.bootstrap)
    return _Judged(comparing.with_verdicts(compared, samples.question), len(few), sum(few))


def _parts(samples: _Samples, namer: Namer) -> _Judged:
    engine, question = samples.engine, samples.question
    large, few = _large(samples.fetch(counts.sizes(samples.table), keys.ARM, by_part=True), question)
    compared: list[Part] = []
    are_balanced = False
    sampled = samples.table
    if samples.have_parts_within_networks:
        sampled = sampled.mutate(cell=keys.by_network_hour(sampled["cell"], sampled["stratum"]))
    portions = _portions(large)
    for number, portion in enumerate(portions):
        portion_samples = sampled
        if len(portions) > 1 or not few.is_empty():
            portion_samples = counts.kept(portion_samples, engine.put(f"portion_{number}", portion.select("part")))
        mixes = samples.fetch(counts.mix(portion_samples, by_part=True), {**keys.ARM, **keys.GROUP}, by_part=True)
        queues = samples.fetch(counts.queues(portion_samples, by_part=True), keys.GROUP, by_part=True)
        strata = samples.fetch(counts.strata(portion_samples, by_part=True), {**keys.ARM, **keys.LOT}, by_part=True)
        factors = _factors(strata, counts.PART, question)
        if factors is not None:
            portion_samples = counts.weighted(portion_samples, engine.put(f"factors_{number}", factors), by_part=True)
            are_balanced = True
        names = {**keys.ARM, **keys.GROUP, "bucket": keys.BUCKETS}
        cells = samples.fetch(counts.histogram(portion_samples, by_part=True), names, by_part=True)
        values = namer(portion["part"])
        tables = {
            values[key]: replace(counted, networks=samples.networks.of_part(key, samples.chosen))
            for (key,), counted in Counted(cells, mixes, queues).split(counts.PART)
        }
        compared += comparing.compare(tables, samples.chosen, question, samples.bootstrap)
    return _Judged(comparing.with_verdicts(compared, question), len(few), int(few["n"].sum()), are_balanced)


def _large(sizes: pl.DataFrame, question: Question) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Separate the parts with enough samples of both arms for any metric from the others."""
    n, is_treatment = pl.col("n"), pl.col("arm") == TREATMENT
    smaller_arm = pl.min_horizontal(n.filter(is_treatment).sum(), n.filter(~is_treatment).sum())
    counted = sizes.group_by("part", "metric").agg(n.sum(), smaller_arm.alias("least"))
    is_enough = (pl.col("least") >= question.least_samples).any().alias("is_enough")
    parts = counted.group_by("part").agg(n.sum(), is_enough).sort(["n", "part"], descending=[True, False])
    return parts.filter("is_enough"), parts.filter(~pl.col("is_enough"))


def _portions(large: pl.DataFrame) -> list[pl.DataFrame]:
    if large.is_empty():
        return []
    cells = pl.min_horizontal(pl.col("n"), 4 * GROUPS * CELLS)
    numbered = large.with_columns((cells.cum_sum() // MAX_CELLS).alias("portion"))
    return numbered.partition_by("portion", maintain_order=True)


def _nothing(question: Question, overview: overviews.Overview) -> ThalwegError:
    hints = {
        "ab": "thalweg records shows the content of the files",
        "before-after": "check that --at is the time at which the treatment was enabled",
        "switchback": "check that --every is the length of the periods",
    }
    of_condition = f" with {text(question.where)}" if question.where else ""
    return ThalwegError(
        "nothing-to-compare",
        f"none of the {overview.rows:,} rows{of_condition} is a finished transfer or connection of"
        f" {question.treatment} or {question.control}",
        found=", ".join(f"{cc} ({n:,})" for cc, n in overview.algorithms.items()),
        expected="transfers with fct_us and acked_bytes, or closed connections with busy_goodput_bps",
        hint=hints[question.design.name],
        exit_code=Exit.NO_EVIDENCE,
    )
