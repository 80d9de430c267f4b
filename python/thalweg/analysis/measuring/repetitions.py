"""Every measure of every trustworthy experiment, over its full duration or within a window."""

from collections.abc import Collection, Sequence

import polars as pl

from thalweg.analysis.measuring.apps import app_measures
from thalweg.analysis.measuring.convergence import convergence_times
from thalweg.analysis.measuring.counters import CONNECTION, SAMPLED, Copies, by_flow, copies
from thalweg.analysis.measuring.link import (
    PATH_MEASURES,
    QUEUE_COLUMNS,
    bottlenecks,
    path_measures,
    with_utilisation_while_active,
)
from thalweg.analysis.measuring.max_min_share import max_min_shares
from thalweg.analysis.measuring.measures import APP_MEASURES, MEASURES, UP_MEASURES
from thalweg.analysis.measuring.probe_rtt import synchronisation
from thalweg.analysis.measuring.stability import stability
from thalweg.analysis.measuring.starved import starved
from thalweg.analysis.measuring.windowed import window_measures
from thalweg.analysis.statistics.fairness import evenness, fairness
from thalweg.analysis.tables.apps import apps, has_apps
from thalweg.analysis.tables.batches import batches
from thalweg.analysis.tables.derived import MICROSECOND_NS, base_rtts, rates
from thalweg.analysis.tables.directions import LINKS, UP, has_up
from thalweg.analysis.tables.flows import EXPERIMENT, flow_measures
from thalweg.analysis.tables.samples import sample_measures
from thalweg.analysis.tables.window import Window
from thalweg.results import Run

FROM_SAMPLES = {
    "stability",
    "convergence_time",
    "inflight_bdp",
    "cwnd_mean",
    "delivery_rate_max",
    "probe_rtt_sync",
}
"""Measures of a whole experiment that need the time series of its connections."""

SAMPLE_COLUMNS = [
    *EXPERIMENT,
    "flow",
    *CONNECTION,
    "t_us",
    *SAMPLED,
    "cwnd_packets",
    "delivery_rate_bps",
    "srtt_us",
    "ca_state",
]

FROM_QUEUE = {*PATH_MEASURES, *UP_MEASURES, "utilisation_while_active"}


def repetitions(
    run: Run, window: tuple[float, float] | None = None, measures: Collection[str] | None = None
) -> pl.DataFrame:
    """Return measures of every trustworthy experiment: experiment, repetition, flow, cc, measure, unit, value.

    Measures of the path have no flow and no cc; undefined values are null. With `window` (two times in s since the
    start of the experiment), only measures with `Measure.in_window` are returned, computed from the time series.

    Raises:
        ThalwegError: If the window has no length.
    """
    part = Window.of(window)
    reader = _Reader(run, part, None if measures is None else set(measures), in_window=window is not None)
    frames = [reader.read(ids) for ids in batches(run, reader.tables)]
    return pl.concat(frames) if frames else _tidy([], [])


class _Reader:
    def __init__(self, run: Run, window: Window, measures: set[str] | None, *, in_window: bool) -> None:
        self.run, self.window, self.in_window = run, window, in_window
        self.wanted = [
            name
            for name, measure in MEASURES.items()
            if (measures is None or name in measures) and (measure.in_window or not in_window)
        ]
        self.has_up = has_up(run)
        if not self.has_up:
            self.wanted = [name for name in self.wanted if name not in UP_MEASURES]
        if not has_apps(run):
            self.wanted = [name for name in self.wanted if name not in APP_MEASURES]
        self.needs_queue = bool(FROM_QUEUE & set(self.wanted))
        self.needs_samples = bool(set(self.wanted) & FROM_SAMPLES) or (
            in_window and any(MEASURES[name].of == "flow" or name in ("jain", f"jain{UP}") for name in self.wanted)
        )
        self.tables = ["queue"] * self.needs_queue + ["samples"] * self.needs_samples
        self.rates, self.base_rtts, self.apps = rates(run), base_rtts(run), apps(run)
        self.planned = {experiment["experiment"]: experiment for experiment in run.plan["experiments"]}

    def read(self, ids: Sequence[str]) -> pl.DataFrame:
        flows = self.run.collect(self.run.scan("flows", ids))
        queue = self.run.collect(self.run.scan("queue", ids if self.needs_queue else []).select(QUEUE_COLUMNS))
        links = {
            direction: bottlenecks(queue, link) if direction == "down" or self.has_up else {}
            for direction, link in LINKS.items()
        }
        samples = self.run.collect(self.run.scan("samples", ids if self.needs_samples else []).select(SAMPLE_COLUMNS))
        states = sample_measures(samples, self.rates, self.base_rtts, self.window)
        all_copies = self._copies(flows, samples) if self.needs_samples else {}
        of_path = path_measures(links["down"], self.window)
        if self.has_up:
            up = path_measures(links["up"], self.window).rename({name: f"{name}{UP}" for name in PATH_MEASURES})
            of_path = of_path.join(up, on=EXPERIMENT, how="full", coalesce=True)
        if self.in_window:
            of_flows, jains = window_measures(all_copies, self.window)
        else:
            of_flows = flow_measures(flows)
            for extra in (evenness(flows), starved(flows, self.base_rtts), *self._of_shares_and_apps(flows)):
                of_flows = of_flows.join(extra, on=[*EXPERIMENT, "flow"], how="left", maintain_order="left")
            of_flows = with_utilisation_while_active(of_flows, links).drop("start_us", "end_us", "direction")
            states = states.drop("rtt_mean", "rtt_p50", "rtt_p95")
            jains = fairness(flows)
        of_flows = (
            of_flows.join(states, on=[*EXPERIMENT, "flow"], how="left", maintain_order="left")
            .join(self._rates_over_time(all_copies), on=[*EXPERIMENT, "flow"], how="left", maintain_order="left")
            .join(self.base_rtts, on=["experiment", "flow"], how="left", maintain_order="left")
            .with_columns((pl.col("rtt_p95") - pl.col("base_rtt_s")).clip(lower_bound=0).alias("latency_under_load"))
        )
        of_path = of_path.join(jains, on=EXPERIMENT, how="full", coalesce=True)
        if "probe_rtt_sync" in self.wanted:
            of_path = of_path.join(synchronisation(samples.lazy(), flows), on=EXPERIMENT, how="left")
        of_path = of_path.sort(EXPERIMENT)
        return _tidy([of_flows, of_path], self.wanted)

    def _of_shares_and_apps(self, flows: pl.DataFrame) -> list[pl.DataFrame]:
        frames = []
        if "max_min_share" in self.wanted:
            frames.append(max_min_shares(flows, self.rates, self.planned))
        if set(APP_MEASURES) & set(self.wanted):
            frames.append(app_measures(flows, self.apps))
        return frames

    def _copies(self, flows: pl.DataFrame, samples: pl.DataFrame) -> Copies:
        """Return the copies of flows in sampled experiments; without samples, counters between start and end are
        unknown.
        """
        sampled = flows.join(samples.select(EXPERIMENT).unique(), on=EXPERIMENT, how="semi", maintain_order="left")
        return copies(sampled, samples)

    def _rates_over_time(self, of_experiments: Copies) -> pl.DataFrame:
        rows = []
        for (experiment, repetition), experiment_copies in of_experiments.items():
            planned = self.planned[experiment]
            interval_us = planned["sample_interval_ns"] // MICROSECOND_NS
            times = convergence_times(experiment_copies, planned, interval_us, self.window)
            rows += [
                (experiment, repetition, flow, stability(flow_copies, interval_us, self.window), times.get(flow))
                for flow, flow_copies in by_flow(experiment_copies).items()
            ]
        values = dict.fromkeys(["stability", "convergence_time"], pl.Float64)
        schema = {**dict.fromkeys(EXPERIMENT, pl.UInt64), "flow": pl.String, **values}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _tidy(frames: Sequence[pl.DataFrame], measures: Sequence[str]) -> pl.DataFrame:
    keys = [*EXPERIMENT, "flow", "cc"]
    schema = dict.fromkeys(EXPERIMENT, pl.UInt64) | dict.fromkeys(["flow", "cc", "measure"], pl.String)
    empty = pl.DataFrame(schema=schema | {"value": pl.Float64})
    tables = [empty]
    for frame in frames:
        missing = [pl.lit(None, pl.String).alias(key) for key in keys if key not in frame.columns]
        on = [name for name in measures if name in frame.columns]
        values = frame.with_columns(*missing).unpivot(index=keys, on=on, variable_name="measure")
        tables.append(values.with_columns(pl.col("value").cast(pl.Float64)))
    units = {name: measure.unit for name, measure in MEASURES.items()}
    unit = pl.col("measure").replace_strict(units, return_dtype=pl.String).alias("unit")
    return pl.concat(tables).select(*keys, "measure", unit, "value")
