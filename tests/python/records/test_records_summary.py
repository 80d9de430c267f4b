"""Summaries of records, on synthetic rows with known answers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic_records as synthetic
from thalweg.records import MEASURES, Summary, read, summarise

Thalweg = Callable[..., Any]


def summary_of(folder: Path, rows: list[dict[str, Any]]) -> Summary:
    synthetic.flushed(folder, 1, 1, rows)
    return summarise(read([folder]))


def test_rows_are_counted_by_every_category(tmp_path: Path) -> None:
    rows = [
        synthetic.closed(1),
        synthetic.closed(2, cc="bbr", close="timeout", direction="out", machine="web2", ip_version=6),
        synthetic.closed(3, cc=None, close=None, direction=None),
        synthetic.interim(4, 1, cc="bbr"),
        synthetic.transfer(1),
        synthetic.transfer(1, 1),
    ]
    summary = summary_of(tmp_path, rows)
    counts = {
        column: {count.value: (count.connections, count.transfers) for count in found}
        for column, found in summary.counts.items()
    }
    assert counts["kind"] == {"close": (3, 0), "interim": (1, 0), "transfer": (0, 2)}
    assert counts["cc"] == {"cubic": (1, 2), "bbr": (2, 0), "unknown": (1, 0)}
    assert counts["close"] == {"remote_fin": (1, 0), "timeout": (1, 0), "unknown": (1, 0)}
    assert counts["direction"] == {"in": (2, 2), "out": (1, 0), "unknown": (1, 0)}
    assert counts["machine"] == {"web1": (3, 2), "web2": (1, 0)}
    assert counts["ip_version"] == {"4": (3, 2), "6": (1, 0)}
    assert (summary.rows, summary.open, summary.superseded) == (6, 1, 0)
    assert (summary.first_us, summary.last_us) == (synthetic.NOON_US, synthetic.NOON_US + synthetic.MINUTE)


def test_quantiles_of_each_algorithm_are_those_of_its_rows(tmp_path: Path) -> None:
    rows = [synthetic.closed(n, cc="bbr", rtt_min_us=1000 * n, rtt_p95_us=2000 * n) for n in range(1, 101)]
    rows += [synthetic.closed(n, rtt_min_us=5_000) for n in range(200, 203)]
    spreads = summary_of(tmp_path, rows).algorithms["bbr"].spreads
    assert spreads["rtt_min"].n == 100
    assert spreads["rtt_min"].low == pytest.approx(0.001)
    assert spreads["rtt_min"].high == pytest.approx(0.1)
    assert spreads["rtt_min"].mean == pytest.approx(0.0505)
    for share in (0.01, 0.1, 0.5, 0.9, 1.0):
        assert spreads["rtt_min"].quantile(share) == pytest.approx(share / 10, rel=0.012)
        assert spreads["rtt_p95"].quantile(share) == pytest.approx(share / 5, rel=0.012)


def test_the_curve_is_the_cumulative_distribution(tmp_path: Path) -> None:
    rows = [synthetic.transfer(n, goodput_bps=float(rate)) for n, rate in enumerate([1e6, 1e6, 2e6, 4e6])]
    curve = summary_of(tmp_path, rows).algorithms["cubic"].spreads["goodput"].curve()
    assert curve == [(1e6, 0.0), (1e6, 0.5), (2e6, 0.75), (4e6, 1.0)]


def test_a_long_curve_is_thinned_and_keeps_both_ends(tmp_path: Path) -> None:
    rows = [synthetic.closed(n, rtt_min_us=round(1.004**n)) for n in range(1000, 4000)]
    curve = summary_of(tmp_path, rows).algorithms["cubic"].spreads["rtt_min"].curve()
    assert len(curve) <= 301
    assert curve[0][0] == pytest.approx(1.004**1000 / 1e6, rel=0.02)
    assert curve[-1] == (pytest.approx(1.004**3999 / 1e6, rel=1e-6), 1.0)
    assert curve == sorted(curve)


def test_completion_times_are_reported_by_size(tmp_path: Path) -> None:
    rows = [
        synthetic.transfer(1, acked_bytes=9_999, fct_us=20_000),
        synthetic.transfer(2, acked_bytes=10_000, fct_us=40_000),
        synthetic.transfer(3, acked_bytes=500_000_000, fct_us=80_000_000),
        synthetic.transfer(4, acked_bytes=None, sent_bytes=None, fct_us=5),
        synthetic.transfer(5, acked_bytes=5, fct_us=None, goodput_bps=None),
    ]
    by_size = summary_of(tmp_path, rows).algorithms["cubic"].by_size
    assert {number: spread.quantile(0.5) for number, spread in by_size.items()} == pytest.approx(
        {0: 0.02, 1: 0.04, 5: 80.0}
    )


def test_acknowledged_bytes_that_no_row_has_are_unknown(tmp_path: Path) -> None:
    rows = [synthetic.closed(1, acked_bytes=None), synthetic.closed(2, cc="bbr", acked_bytes=0)]
    algorithms = summary_of(tmp_path, [*rows, synthetic.closed(3, cc="bbr", acked_bytes=None)]).algorithms
    assert (algorithms["cubic"].acked_bytes, algorithms["bbr"].acked_bytes) == (None, 0)


def test_a_whole_connection_has_no_completion_time(tmp_path: Path) -> None:
    spreads = summary_of(tmp_path, [synthetic.closed(1)]).algorithms["cubic"].spreads
    assert not {"completion_time", "goodput", "serving_time"} & spreads.keys()


def test_the_cpu_limited_share_counts_only_known_rows(tmp_path: Path) -> None:
    flags = [True, False, False, False, None]
    rows = [synthetic.closed(n, cc="bbr", cpu_limited=flag) for n, flag in enumerate(flags)]
    summary = summary_of(tmp_path, [*rows, synthetic.closed(9)])
    assert summary.algorithms["bbr"].cpu_limited_share == 0.25
    assert summary.algorithms["cubic"].cpu_limited_share is None


def test_retransmissions_count_segments_or_else_bytes(tmp_path: Path) -> None:
    rows = [
        synthetic.closed(1, segments=100, retransmits=2),
        synthetic.closed(2, segments=None, retransmits=None, sent_bytes=1000, retransmitted_bytes=40),
        synthetic.closed(3, segments=0, retransmits=0, sent_bytes=0, retransmitted_bytes=0),
    ]
    spread = summary_of(tmp_path, rows).algorithms["cubic"].spreads["retransmit_ratio"]
    assert (spread.n, spread.mean) == (2, pytest.approx(0.03))


def test_limits_are_shares_of_the_busy_time(tmp_path: Path) -> None:
    rows = [
        synthetic.closed(1, busy_us=1000, rwnd_limited_us=500, sndbuf_limited_us=100, app_limited_share=0.25),
        synthetic.closed(2, busy_us=4000, rwnd_limited_us=0, sndbuf_limited_us=None, app_limited_share=0.75),
        synthetic.closed(3, busy_us=0, rwnd_limited_us=0, sndbuf_limited_us=0, app_limited_share=None),
    ]
    spreads = summary_of(tmp_path, rows).algorithms["cubic"].spreads
    found = {name: (spreads[name].n, spreads[name].mean) for name in ("app_limited", "rwnd_limited", "sndbuf_limited")}
    assert found == {"app_limited": (2, 0.5), "rwnd_limited": (2, 0.25), "sndbuf_limited": (1, 0.1)}


def test_a_sampled_row_is_weighted(tmp_path: Path) -> None:
    rows = [synthetic.closed(1, rtt_min_us=10_000), synthetic.closed(2, rtt_min_us=90_000, sampled_one_in=9)]
    summary = summary_of(tmp_path, rows)
    spread = summary.algorithms["cubic"].spreads["rtt_min"]
    assert (spread.n, spread.stands_for) == (2, 10)
    assert spread.quantile(0.1) == pytest.approx(0.01)
    assert spread.quantile(0.11) == pytest.approx(0.09)
    assert spread.mean == pytest.approx(0.082)
    (count,) = summary.counts["cc"]
    assert (count.connections, count.connections_stand_for) == (2, 10)
    assert summary.largest_weight == 9
    assert summary.over_time["connections"].sum() == 10


def test_missing_values_are_reported_per_column_with_their_meaning(tmp_path: Path) -> None:
    synthetic.flushed(
        tmp_path, 1, 1, [synthetic.closed(1), synthetic.closed(2, rtt_p95_us=None), synthetic.transfer(1)]
    )
    synthetic.write(tmp_path / "nginx-a.parquet", [synthetic.transfer(3, source="nginx", rtt_p95_us=None, fct_us=None)])
    missing = {column.column: column for column in summarise(read([tmp_path])).missing}
    assert (missing["rtt_p95_us"].connections, missing["rtt_p95_us"].transfers) == (0.5, 0.5)
    assert missing["rtt_p95_us"].never == ("nginx",)
    assert missing["rtt_p95_us"].means
    assert (missing["fct_us"].connections, missing["fct_us"].transfers) == (None, 0.5)
    assert (missing["netns"].connections, missing["netns"].transfers) == (1.0, 1.0)
    assert "rtt_min_us" not in missing
    assert "close" not in missing
    assert "sampled_one_in" not in missing


def test_counts_over_time_are_by_end_time(tmp_path: Path) -> None:
    rows = [synthetic.closed(n, end_us=synthetic.NOON_US + n * synthetic.MINUTE) for n in (0, 1, 119, 120, 300)]
    summary = summary_of(tmp_path, rows)
    assert summary.bin_s == 300
    first = {(start - synthetic.NOON_US) // synthetic.MINUTE: n for _, start, n, _ in summary.over_time.iter_rows()}
    assert first == {0: 2, 115: 1, 120: 1, 300: 1}


def test_the_command_prints_a_line_per_algorithm_and_lists_skipped_files(thalweg: Thalweg, tmp_path: Path) -> None:
    synthetic.flushed(tmp_path / "r", 1, 1, [synthetic.closed(1), synthetic.closed(2, cc="bbr"), synthetic.transfer(1)])
    (tmp_path / "r" / "x.parquet").write_text("nothing")
    done = thalweg("records", "r")
    assert done.returncode == 0, done.stderr
    assert "2 connections closed, 1 transfer, in 1 file" in done.stdout
    assert "2026-11-21 12:00:00 to 12:00:10 UTC" in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("cubic"))
    assert line.split()[:3] == ["cubic", "1", "1"]
    assert "8 [8, 8]" in line
    assert "x.parquet: it is damaged" in done.stderr


def test_rows_that_tune_left_alone_make_the_comparison_unfair(thalweg: Thalweg, tmp_path: Path) -> None:
    chosen = ["treated", "held_out", "treated", "treated"]
    for name, assignments in (("fair", chosen), ("unfair", [*chosen, "untouched"])):
        rows = [synthetic.transfer(number, assignment=kind) for number, kind in enumerate(assignments)]
        synthetic.write(tmp_path / name / "a.parquet", rows)
        done = thalweg("records", name, "--out", f"{name}.html")
        caution = "1 rows, `tune` left the algorithm alone" if name == "unfair" else "left the algorithm alone"
        for text in (done.stdout, (tmp_path / f"{name}.html").read_text()):
            assert (caution in text) == (name == "unfair")
    assert "assignment: treated 60 %, held_out 20 %, untouched 20 %" in done.stdout.replace("\u202f", " ")


def test_the_command_prints_the_same_numbers_as_json(thalweg: Thalweg, tmp_path: Path) -> None:
    synthetic.flushed(tmp_path / "r", 1, 1, synthetic.a_day())
    done = thalweg("records", "r", "--json")
    document = json.loads(done.stdout)
    summary = summarise(read([tmp_path / "r"]))
    assert document["rows"] == 800
    assert [algorithm["cc"] for algorithm in document["algorithms"]] == ["bbr", "cubic"]
    for algorithm in document["algorithms"]:
        for name, spread in summary.algorithms[algorithm["cc"]].spreads.items():
            assert algorithm["measures"][name]["quantiles"]["0.5"] == pytest.approx(spread.quantile(0.5))


@pytest.mark.parametrize("arguments", [["nowhere"], ["empty"], ["broken.parquet"]])
def test_the_command_explains_an_empty_summary(thalweg: Thalweg, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_text("nothing")
    done = thalweg("records", *arguments)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("error[no-")


def test_files_without_rows_are_reported(thalweg: Thalweg, tmp_path: Path) -> None:
    synthetic.flushed(tmp_path / "r", 1, 1, [])
    done = thalweg("records", "r")
    assert done.returncode != 0
    assert "the files contain no rows" in done.stderr


def test_the_reference_defines_every_measure_with_its_unit_and_its_columns() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "records-summary.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\w+) \| .* \| (.*) \|$", page, flags=re.M)
    document = {name: ("" if unit == "BDP" else unit, of) for name, unit, of, _ in rows}
    assert document == {name: (measure.unit, measure.of) for name, measure in MEASURES.items()}
    for name, _, _, columns in rows:
        assert set(MEASURES[name].columns) <= set(re.findall(r"\w+", columns))
