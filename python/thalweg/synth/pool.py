"""Pools of connections to draw from: within a class the same number for each path, size and algorithm.

A pool has the values that the simulator measured, or that a planted truth defines, as arrays by cell, connection and
transfer. A cell is a combination of path, size and arm; the arm varies fastest.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from thalweg.errors import Exit, ThalwegError
from thalweg.results import Run
from thalweg.scenario.text import quantities
from thalweg.synth.classes import ARMS, PathClass

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Array = Floats | Integers | npt.NDArray[np.int32] | Booleans

AXES = ("path.rate", "path.rtt", "path.loss", "flow.object.requests.size", "flow.object.cc")
"""Keys that the scenarios sweep, in the order of the axes of a cell's number."""

AGES_S = (1, 3, 10, 30)
"""Ages of a connection at which records have the acknowledged bytes."""

CONNECTION = ["experiment", "repetition", "connection"]


@dataclass(frozen=True)
class Pool:
    """Pool of connections of a class."""

    shape: tuple[int, ...]
    """Number of values on each axis: rate, RTT, loss, size, arm."""
    fct_us: Floats
    """Completion time from the request on, without the handshake. Arrays are by cell, connection and transfer unless
    noted.
    """
    segments: Integers
    retransmits: Integers
    rtt_min_us: Floats
    rtt_mean_us: Floats
    rtt_p95_us: Floats
    acked_bytes: Floats
    """Acknowledged bytes of the first object, by cell, connection and age; NaN: already complete, or unknown."""

    @property
    def connections(self) -> int:
        """Number of connections in each cell."""
        return int(self.fct_us.shape[1])

    def cell(self, rate: Integers, rtt: Integers, loss: Integers, size: Integers, arm: Integers) -> Integers:
        """Return the numbers of cells."""
        return np.ravel_multi_index((rate, rtt, loss, size, arm), self.shape).astype(np.int64)


def path_rtts_us(kind: PathClass) -> Floats:
    """Return the round-trip times of the empty path, by position on the axis."""
    return np.array([quantities.time(text) / 1e3 for text in kind.rtts])


def sizes_bytes(kind: PathClass) -> Integers:
    """Return the sizes of objects, by position on the axis."""
    return np.array([quantities.size(text) for text in kind.sizes], dtype=np.int64)


def pool_of(run: Run, kind: PathClass) -> Pool:
    """Create the pool of a class from the run of its scenario.

    Raises:
        ThalwegError: If the run lacks connections.
    """
    flows = run.flows().with_columns(_cell(kind)).sort("cell", *CONNECTION[1:], "transfer")
    cells, transfers = int(np.prod(kind.shape)), int(flows["transfer"].max() or 0) + 1  # type: ignore[arg-type]
    connections, remainder = divmod(flows.height, cells * transfers)
    counts = flows.group_by("cell").len()["len"]
    if remainder or not connections or counts.n_unique() != 1 or not flows["completed"].all():
        raise _incomplete(run, kind)
    dense = (cells, connections, transfers)
    rtt_us = path_rtts_us(kind)[_axis(flows["cell"].to_numpy(), kind.shape, 1)]
    # A record's completion time begins with the first byte queued; for a connection's first object the simulator's
    # begins with the SYN, one round trip earlier.
    handshake_us = np.where(flows["transfer"].to_numpy() == 0, rtt_us, 0)
    # An object whose every segment was retransmitted has no RTT sample; it gets the RTT of the empty path.
    rtts = (flows[name].to_numpy() for name in ("rtt_min_us", "rtt_mean_us", "rtt_p95_us"))
    rtt_min_us, rtt_mean_us, rtt_p95_us = (np.where(np.isnan(rtt), rtt_us, rtt).reshape(dense) for rtt in rtts)
    return Pool(
        kind.shape,
        (flows["fct_us"].to_numpy() - handshake_us).reshape(dense),
        flows["segments"].to_numpy().astype(np.int64).reshape(dense),
        flows["retransmits"].to_numpy().astype(np.int64).reshape(dense),
        rtt_min_us,
        rtt_mean_us,
        np.maximum(rtt_p95_us, rtt_min_us),  # the simulator's quantiles have a resolution of 1 %
        _acked(run, flows, rtt_us).reshape(cells, connections, len(AGES_S)),
    )


def _cell(kind: PathClass) -> pl.Expr:
    number = pl.lit(0, dtype=pl.Int64)
    for key, values in zip(AXES, (*kind.axes, ARMS), strict=True):
        index = pl.col(key).replace_strict(list(values), list(range(len(values))), return_dtype=pl.Int64)
        number = number * len(values) + index
    return number.alias("cell")


def _axis(cells: Integers, shape: tuple[int, ...], axis: int) -> Integers:
    return np.asarray(np.unravel_index(cells, shape)[axis])


def _acked(run: Run, flows: pl.DataFrame, rtt_us: Floats) -> Floats:
    samples = run.collect(run.scan("samples").select(*CONNECTION, "t_us", "acked_bytes").sort(*CONNECTION, "t_us"))
    series = samples.partition_by(CONNECTION, as_dict=True, include_key=False)
    spans = flows.with_columns(opened_us=flows["start_us"] + pl.Series(rtt_us)).filter(pl.col("transfer") == 0)
    acked_bytes = np.full((spans.height, len(AGES_S)), np.nan)
    rows = spans.select(*CONNECTION, "opened_us", "end_us", "acked_bytes").iter_rows()
    for number, (*key, opened_us, end_us, acked) in enumerate(rows):
        at_us = np.array([opened_us + age * 1e6 for age in AGES_S])
        is_under_way = at_us < end_us
        if is_under_way.any():
            connection_rows = series[tuple(key)].filter(pl.col("t_us") < end_us)
            t_us, delivered = [opened_us, *connection_rows["t_us"], end_us], [0, *connection_rows["acked_bytes"], acked]
            acked_bytes[number, is_under_way] = np.interp(at_us[is_under_way], t_us, delivered)
    return acked_bytes


def _incomplete(run: Run, kind: PathClass) -> ThalwegError:
    return ThalwegError(
        "incomplete-run",
        f"the run of the class `{kind.name}` lacks connections",
        place=str(run.path),
        expected="all connections of its scenario, complete",
        hint=f"rm -r {run.path}, and run the command again",
        exit_code=Exit.FAILED,
    )
