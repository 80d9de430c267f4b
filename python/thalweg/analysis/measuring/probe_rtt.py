"""Synchronisation of BBR flows: times at which all of them are in ProbeRTT.

A BBR flow whose minimum RTT is 10 s old reduces its window to 4 packets for 200 ms (ProbeRTT) to drain the queue. If
all flows of a link do so at the same time, the queue empties and all measure the base RTT; otherwise each measures the
others' queue. ProbeRTT is detected by the window.
"""

import polars as pl

from thalweg.analysis.tables.flows import EXPERIMENT, MICROSECONDS

ALGORITHM = "bbr"

PROBE_RTT_PACKETS = 4
"""Window of ProbeRTT (Linux net/ipv4/tcp_bbr.c, bbr_cwnd_min_target)."""


def synchronisation(samples: pl.LazyFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return `probe_rtt_sync` per experiment and repetition with at least two BBR connections.

    It is the time in s from the start of the last connection until all are in ProbeRTT in one sample; null: never.
    """
    bbr_flows = flows.filter(pl.col("cc") == ALGORITHM)
    names = bbr_flows.select(*EXPERIMENT, "flow").unique()
    connections = bbr_flows.group_by(*EXPERIMENT, "flow", "copy", "connection", maintain_order=True).agg(
        pl.col("start_us").min()
    )
    counts = connections.group_by(EXPERIMENT, maintain_order=True).agg(
        pl.len().alias("connections"), pl.col("start_us").max().alias("last_start_us")
    )
    # The window is also small after a retransmission timeout.
    is_probing = (pl.col("cwnd_packets") <= PROBE_RTT_PACKETS) & (pl.col("ca_state") != "loss")
    probing = (
        samples.filter(is_probing)
        .join(names.lazy(), on=[*EXPERIMENT, "flow"], how="semi")
        .group_by(*EXPERIMENT, "t_us")
        .agg(pl.len().alias("probing"))
        .collect()
    )
    in_step = probing.join(counts, on=EXPERIMENT).filter(pl.col("probing") == pl.col("connections"))
    overlaps = in_step.group_by(EXPERIMENT).agg(
        ((pl.col("t_us").min() - pl.col("last_start_us").first()) / MICROSECONDS).alias("probe_rtt_sync")
    )
    shared = counts.filter(pl.col("connections") > 1).select(EXPERIMENT)
    return shared.join(overlaps, on=EXPERIMENT, how="left", maintain_order="left")
