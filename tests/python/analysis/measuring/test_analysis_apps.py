"""Application measures and fair shares, checked against manually computed results."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow, link
from thalweg import analysis
from thalweg.results import open_run

MS = 1_000
"""Microseconds in a millisecond."""
SECOND = 1_000_000
"""Microseconds in a second."""


def app(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"kind": "app", "app": {"kind": kind} | parameters}


def measured(synthetic: SyntheticRun, name: str) -> dict[str, float | None]:
    rows = analysis.repetitions(open_run(synthetic.write()))
    of_flow = rows.filter(rows["flow"].eq_missing(name))
    return dict(zip(of_flow["measure"], of_flow["value"], strict=True))


def test_a_video_has_a_bitrate_a_startup_delay_and_stalls(tmp_path: Path) -> None:
    load = app("video", bitrates_bps=[1_000_000, 3_000_000], segment_ns=4, buffer_ns=30)
    synthetic = SyntheticRun(tmp_path / "run", (experiment(flows=[flow("tv", load=load)]),))
    for item, (end_s, stall_s, mbps) in enumerate([(2, 0, 1), (7, 1, 1), (12, 1, 3)]):
        synthetic.transfer(
            0, 0, "tv", transfer=item, item=item, start_us=item * 5 * SECOND, end_us=end_s * SECOND,
            stall_us=stall_s * SECOND, bitrate_bps=mbps * 1_000_000,
        )  # fmt: skip
    synthetic.transfer(
        0, 0, "tv", transfer=3, item=3, start_us=12 * SECOND, end_us=22 * SECOND, completed=False,
        stall_us=6 * SECOND, bitrate_bps=3_000_000,
    )  # fmt: skip
    values = measured(synthetic, "tv")
    assert values["startup_delay"] == 2
    assert values["video_bitrate"] == pytest.approx(5e6 / 3), "of the segments that arrived"
    assert (values["stalls"], values["stall_time"]) == (3, 8)
    assert values["stall_ratio"] == pytest.approx(8 / 20), "of the time since playback began"
    assert values["page_time"] is None


@pytest.mark.parametrize("copies", [1, 2])
def test_a_video_that_never_begins_has_no_stalls_instead_of_none(tmp_path: Path, copies: int) -> None:
    load = app("video", bitrates_bps=[5_000_000], segment_ns=4, buffer_ns=30)
    synthetic = SyntheticRun(tmp_path / "run", (experiment(flows=[flow("tv", load=load, count=copies)]),))
    for copy in range(copies):
        # The last copy receives nothing.
        synthetic.transfer(
            0, 0, "tv", copy=copy, end_us=20 * SECOND, completed=copy < copies - 1, stall_us=0, bitrate_bps=5_000_000,
        )  # fmt: skip
    values = measured(synthetic, "tv")
    assert (values["stalls"], values["stall_time"], values["stall_ratio"]) == (None, None, None)


def test_page_load_times_are_of_half_and_all_objects(tmp_path: Path) -> None:
    load = app("web", objects=4, sizes_bytes=[1000])
    synthetic = SyntheticRun(tmp_path / "run", (experiment(flows=[flow("web", load=load)]),))
    for page, ends in enumerate([(100, 200, 300, 900), (150, 350, 400)]):
        begin = page * SECOND
        for end in ends:
            synthetic.transfer(0, 0, "web", item=page, start_us=begin, end_us=begin + end * MS)
    values = measured(synthetic, "web")
    assert values["page_time_half"] == pytest.approx((0.2 + 0.35) / 2)
    assert values["page_time"] == pytest.approx(0.9), "the second page is not complete"
    assert values["stalls"] is None


def test_messages_have_a_rate_and_tail_latency(tmp_path: Path) -> None:
    load = app("rpc", mean_gap_ns=10**8, sizes_bytes=[1000])
    synthetic = SyntheticRun(
        tmp_path / "run", (experiment(flows=[flow("rpc", load=load), flow("bulk", size_bytes=None)]),)
    )
    for item in range(101):
        synthetic.transfer(0, 0, "rpc", item=item, start_us=item * 100 * MS, end_us=item * 100 * MS + item * MS)
    synthetic.transfer(0, 0, "bulk", end_us=10 * SECOND)
    values = measured(synthetic, "rpc")
    assert values["completion_time_p99"] == pytest.approx(0.099)
    assert values["completion_rate"] == pytest.approx(101 / 10.1)
    assert measured(synthetic, "bulk")["completion_rate"] is None


def test_runs_without_applications_have_no_measures_of_applications(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", (experiment(),))
    synthetic.transfer(0, 0)
    assert not {"completion_time_p99", "stalls", "page_time"} & measured(synthetic, "large").keys()


def test_max_min_shares_redistribute_unused_capacity(tmp_path: Path) -> None:
    """The payload rate of 15 Mbit/s is 14.48 Mbit/s. A call needs 1.48 of them, and two bulk flows share the
    other 13.
    """
    load = app("call", frame_bytes=18_500, interval_ns=100_000_000)
    flows = [flow("call", load=load), flow("a", size_bytes=None), flow("b", size_bytes=None)]
    synthetic = SyntheticRun(tmp_path / "run", (experiment(flows=flows, forward=link(15_000_000)),))
    for frame in range(100):
        synthetic.transfer(
            0, 0, "call", item=frame, acked_bytes=18_500, start_us=frame * 100 * MS, end_us=(frame + 1) * 100 * MS
        )
    synthetic.transfer(0, 0, "a", acked_bytes=6_500_000 * 10 // 8, end_us=10 * SECOND, completed=False)
    # Alone in the last ten seconds, its fair share is the entire 14.48 Mbit/s.
    synthetic.transfer(0, 0, "b", acked_bytes=6_500_000 * 10 // 8, end_us=20 * SECOND, completed=False)
    assert measured(synthetic, "call")["max_min_share"] == pytest.approx(1)
    assert measured(synthetic, "a")["max_min_share"] == pytest.approx(1)
    assert measured(synthetic, "b")["max_min_share"] == pytest.approx(6.5 / (6.5 + 14.48))


def test_an_unlimited_link_has_no_fair_shares(tmp_path: Path) -> None:
    synthetic = SyntheticRun(tmp_path / "run", (experiment(forward=link(None)),))
    synthetic.transfer(0, 0)
    assert measured(synthetic, "large")["max_min_share"] is None
