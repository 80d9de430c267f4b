"""Which rows and files are evaluated: unknown, damaged and sampled ones, segments, and batches."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic_records as synthetic
from advise_answers import BY_PREFIX, answer, verdicts
from synthetic_traffic import HOUR_US, Traffic, whole, write
from thalweg.advise import NO_DIFFERENCE, NOT_ENOUGH, Question, advise
from thalweg.errors import ThalwegError
from thalweg.records.schema import SCHEMA


def spoil(file: Path) -> None:
    """Damage the rows of a file but not its footer, which contains the schema."""
    content = bytearray(file.read_bytes())
    content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
    file.write_bytes(content)


def test_a_connection_that_changed_its_algorithm_is_in_neither_arm(tmp_path: Path) -> None:
    frame = Traffic().frame()
    changed = Traffic(seed=2, effect=lambda _: 9.0).frame().with_columns(cc_at_open=pl.lit("reno"))
    result = answer(tmp_path, pl.concat([frame, changed]))
    assert result.n == frame.height


def test_connections_count_if_their_source_has_no_transfers(tmp_path: Path) -> None:
    connections = pl.DataFrame(
        [
            synthetic.closed(n, cc=("bbr", "cubic")[n % 2], start_us=synthetic.NOON_US + n * 60 * synthetic.SECOND)
            for n in range(2000)
        ]
    )
    result = answer(tmp_path, whole(connections), Question(segments=()))
    assert (result.n, set(result.overall.comparisons)) == (2000, {"throughput"})
    both = pl.concat([whole(connections), whole(pl.DataFrame([synthetic.transfer(n, cc="bbr") for n in range(7)]))])
    assert answer(tmp_path, both, Question(segments=())).n == 7


def test_only_rows_that_meet_the_conditions_count(tmp_path: Path) -> None:
    """BBR halves the completion times of clients in London, and doubles those of transfers from upstreams."""
    clients = Traffic(effect=lambda _: 0.5).frame().with_columns(direction=pl.lit("in"))
    upstreams = Traffic(seed=2, effect=lambda _: 2.0).frame().with_columns(direction=pl.lit("out"))
    for name, frame in (("pop=lon", pl.concat([clients, upstreams])), ("pop=par", upstreams)):
        write(tmp_path / name / "a.parquet", frame)
    question = Question(segments=(), where=(("direction", "in"), ("pop", "lon")))
    result = advise([tmp_path], question)
    assert (result.n, result.rows) == (clients.height, clients.height)
    difference = result.overall.comparisons["completion_time"].difference
    assert difference
    assert difference.treatment.mean < 0.7 * difference.control.mean
    with pytest.raises(ThalwegError, match="no column `dirction`") as caught:
        advise([tmp_path], Question(where=(("dirction", "in"),)))
    assert caught.value.hint == "did you mean direction?"
    with pytest.raises(ThalwegError, match="with `bbr` in rows with direction = sideways"):
        advise([tmp_path], Question(where=(("direction", "sideways"),)))


def test_open_connections_do_not_count(tmp_path: Path) -> None:
    rows = [
        synthetic.closed(1),
        synthetic.closed(2, cc="bbr"),
        synthetic.interim(3, 1),
        synthetic.interim(4, 2, cc="bbr"),
    ]
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    assert result.n == 2


def test_sampled_connections_are_weighted_by_the_sampling_ratio(tmp_path: Path) -> None:
    rows = [synthetic.transfer(n, cc=cc, fct_us=fct, acked_bytes=1000, sampled_one_in=weight)
            for cc in ("bbr", "cubic") for n, (fct, weight) in enumerate([(1000, 1), (8000, 3)])]  # fmt: skip
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    difference = result.overall.comparisons["completion_time"].difference
    assert difference
    assert difference.control.mean == pytest.approx((1000 + 3 * 8000) / 4)
    assert difference.control.n == 2


def test_full_addresses_are_grouped_by_network(tmp_path: Path) -> None:
    addresses = {
        "198.51.100.7": "198.51.100.0/24", "198.51.100.99": "198.51.100.0/24", "198.51.100.0/24": "198.51.100.0/24",
        "2001:db8:1:2::7": "2001:db8:1::/48", "2001:db8::9": "2001:db8::/48", "2001:db8:0:5::9": "2001:db8::/48",
        "2001:db8::/48": "2001:db8::/48", "h:49904e588c3b5db3": "h:49904e588c3b5db3",
    }  # fmt: skip
    rows = [synthetic.transfer(n, cc=cc, remote_address=address, acked_bytes=1000)
            for n, address in enumerate(addresses) for cc in ("bbr", "cubic")]  # fmt: skip
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=("prefix",), least_samples=1))
    assert {part.title: part.n for part in result.parts} == {
        name: 2 * list(addresses.values()).count(name) for name in set(addresses.values())
    }


def test_columns_without_values_do_not_affect_the_others(tmp_path: Path) -> None:
    frame = Traffic(rows=60_000).frame()
    largest = 2**64 - 1
    absurd = pl.DataFrame(
        [
            synthetic.transfer(n, cc=cc, **{name: largest}, sampled_one_in=2**63)
            for n, name in enumerate(["end_us", "start_us", "fct_us", "acked_bytes", "rtt_min_us", "segments"])
            for cc in ("bbr", "cubic")
        ]
        + [synthetic.transfer(n, cc="bbr", acked_bytes=10**8, goodput_bps=rate)
           for n, rate in enumerate([float("nan"), float("inf"), -1.0])],
        schema=SCHEMA,
    )  # fmt: skip
    result = answer(tmp_path, pl.concat([frame, whole(absurd)]))
    assert frame.height <= result.n <= frame.height + absurd.height
    assert set(verdicts(result).values()) == {NO_DIFFERENCE}


def test_hours_and_sizes_per_network_are_segments(tmp_path: Path) -> None:
    frame = Traffic(rows=30_000, clients=40).frame()
    question = Question(segments=("hour", "retransmits", "size", "machine"), least_samples=20, replicates=100)
    result = answer(tmp_path, frame, question)
    hour = (pl.col("start_us") // HOUR_US % 24).cast(pl.String).str.zfill(2)
    size = pl.when(pl.col("acked_bytes") < 100_000).then(pl.lit("10 to 100 kB")).otherwise(pl.lit("100 kB to 1 MB"))
    is_far = pl.col("rtt_min_us") > 100_000
    loss = pl.when(is_far).then(pl.lit("1.5 to 5 %")).otherwise(pl.lit("below 0.1 %"))
    expected = frame.group_by(hour.alias("a"), loss.alias("b"), size.alias("c"), "machine").len()
    assert {part.names: part.n for part in result.parts} == {row[:4]: row[4] for row in expected.iter_rows()}


@pytest.mark.parametrize("names", [("rtt",), ("retransmits",), ("retransmits", "rtt")], ids=",".join)
def test_a_map_axis_is_judged_separately_with_weighted_hours(tmp_path: Path, names: tuple[str, ...]) -> None:
    titles = {"rtt": {"10 to 30 ms", "100 to 200 ms"}, "retransmits": {"below 0.1 %", "1.5 to 5 %"}}

    def late(columns: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.where(columns["hour"] < 12, 0.2, 0.8)

    for share in (lambda _: 0.5, late):
        result = answer(tmp_path, Traffic(share=share).frame(), Question(segments=names, replicates=100))
        assert len(result.parts) == 2
        assert sum(part.n for part in result.parts) + result.too_small_n == 20_000
        for place, name in enumerate(names):
            assert {part.names[place] for part in result.parts} == titles[name]


def test_folders_name_the_point_of_presence(tmp_path: Path) -> None:
    for pop, effect in (("lon", 0.75), ("fra", 1.0)):
        frame = Traffic(effect=lambda _, effect=effect: effect, rows=40_000).frame()
        write(tmp_path / "day=2026-11-21" / f"pop={pop}" / "some.parquet", frame)
    result = advise([tmp_path], Question(segments=("pop",), replicates=300))
    assert verdicts(result) == {"lon": "bbr", "fra": NO_DIFFERENCE}


def test_files_of_an_older_format_count_and_damaged_ones_are_reported(tmp_path: Path) -> None:
    frame = Traffic().frame()
    write(tmp_path / "new.parquet", frame)
    write(tmp_path / "old.parquet", frame.drop("rtt_max_us", "cc_at_open", "sampled_one_in"))
    half = write(tmp_path / "half.parquet", frame).read_bytes()
    (tmp_path / "half.parquet").write_bytes(half[: len(half) // 2])
    result = advise([tmp_path], BY_PREFIX)
    assert result.n == 2 * frame.height
    assert [file.file.name for file in result.left_out] == ["half.parquet"]


def test_a_file_with_damaged_pages_is_reported_and_the_others_count(tmp_path: Path) -> None:
    frame = Traffic().frame()
    write(tmp_path / "good.parquet", frame)
    spoil(write(tmp_path / "bad.parquet", frame))
    result = advise([tmp_path], BY_PREFIX)
    assert result.n == frame.height
    assert [file.file.name for file in result.left_out] == ["bad.parquet"]


def test_if_every_file_is_damaged_the_error_names_the_first(tmp_path: Path) -> None:
    spoil(write(tmp_path / "bad.parquet", Traffic().frame()))
    with pytest.raises(ThalwegError, match=r"there are no records in .*bad\.parquet: its rows are damaged"):
        advise([tmp_path], BY_PREFIX)


@pytest.mark.parametrize("unit_us", [1, 1000, synthetic.SECOND], ids=["microseconds", "milliseconds", "seconds"])
def test_arm_balance_of_many_rows_is_tested_on_a_quarter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit_us: int
) -> None:
    """The sample does not depend on the resolution of the timestamps."""
    monkeypatch.setattr("thalweg.advise.judgement.samples.LOOKED_AT", 1000)
    larger = pl.when(pl.col("cc") == "bbr").then(pl.col("acked_bytes") * 1.2).otherwise(pl.col("acked_bytes"))
    frame = Traffic().frame().with_columns(larger.cast(pl.UInt64), start_us=pl.col("start_us") // unit_us * unit_us)
    result = answer(tmp_path, frame, Question(segments=()))
    (size, _) = result.overall.comparisons["completion_time"].imbalances
    assert size.ratio == pytest.approx(1.2, rel=0.05)
    assert result.overall.losses
    n = result.overall.losses.n_lossy + result.overall.losses.n_clean
    assert n == pytest.approx(frame.filter(pl.col("cc") == "cubic").height / 4, rel=0.1)
    assert result.over_time["n"].sum() == pytest.approx(frame.height / 4, rel=0.1)
    assert result.n == frame.height, "all are judged"


def test_connection_lifetimes_of_many_files_are_estimated_from_a_quarter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample does not depend on the directory of the files."""
    frame = Traffic(changes={"kind": "close", "busy_goodput_bps": 1e6, "acked_1s_bytes": 1000}).frame()
    for number in range(80):
        for folder in ("here", "some where/else"):
            write(tmp_path / folder / f"pop={number % 5}" / f"{number}.parquet", frame.gather_every(80, number))
    question = Question(segments=())
    complete = advise([tmp_path / "here"], question)
    monkeypatch.setattr("thalweg.advise.judgement.samples.LOOKED_AT", 1000)
    sampled, again = (advise([tmp_path / folder], question) for folder in ("here", "some where/else"))
    assert sum(age.treatment.n + age.control.n for age in complete.ages) == frame.height
    counted = sum(age.treatment.n + age.control.n for age in sampled.ages)
    assert counted == pytest.approx(frame.height / 4, rel=0.1)
    assert sampled.ages == again.ages


def test_judging_segments_in_batches_does_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Traffic(clients=30, rows=30_000).frame()
    question = Question(segments=("prefix",), least_samples=100, replicates=200)
    single = answer(tmp_path, frame, question)
    monkeypatch.setattr("thalweg.advise.judging.MAX_CELLS", 10_000)
    batched = answer(tmp_path, frame, question)
    assert len(single.parts) == 30
    assert single.parts == batched.parts


def test_segments_with_few_samples_are_counted(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(clients=3000).frame(), Question(segments=("prefix",)))
    assert not result.parts
    assert result.too_small_n == 20_000
    assert "No part of the records has enough samples: 500 each of bbr and of cubic are needed." in result.headline


def test_an_unknown_segment_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="the records have no column `colour`"):
        answer(tmp_path, Traffic(rows=100).frame(), Question(segments=("colour",)))
    with pytest.raises(ThalwegError, match="but of a table of networks"):
        answer(tmp_path, Traffic(rows=100).frame(), Question(segments=("as",)))


def test_an_absent_algorithm_is_refused_with_the_available_ones(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="`bbr3`") as error:
        answer(tmp_path, Traffic(rows=1000).frame(), Question(treatment="bbr3"))
    assert "cubic (" in (error.value.found or "")


def test_ages_compare_intervals_of_a_connections_lifetime(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for n in range(2000):
        cc = ("bbr", "cubic")[n % 2]
        first = 1_000_000 * rng.lognormal(0, 0.3) * (1.5 if cc == "bbr" else 1)
        then = 2_000_000 * rng.lognormal(0, 0.3)
        moved = {"acked_1s_bytes": round(first), "acked_3s_bytes": round(first + then)}
        rows.append(synthetic.closed(n, cc=cc, start_us=synthetic.NOON_US + n % 40 * HOUR_US) | moved)
    result = answer(tmp_path, whole(pl.DataFrame(rows)), Question(segments=()))
    ratios = {age.title: age.effect.ratio for age in result.ages if age.effect}
    assert ratios["0 to 1 s"] == pytest.approx(1.5, rel=0.05)
    assert ratios["1 to 3 s"] == pytest.approx(1.0, rel=0.05)


def test_results_over_time_have_a_value_per_step_and_arm(tmp_path: Path) -> None:
    result = answer(tmp_path, Traffic(hours=24).frame())
    assert result.step_us == 900 * synthetic.SECOND
    arms = result.over_time.group_by("arm").agg(pl.col("n").sum()).sort("arm")
    assert arms["n"].sum() == result.n
    assert result.over_time["start_us"].n_unique() > 90


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_a_non_finite_throughput_is_unknown(tmp_path: Path, value: float, dtype: type[pl.DataType]) -> None:
    frame = Traffic(size_bytes=(4_000_000, 9_000_000)).frame()
    bad = pl.when(pl.col("cc") == "bbr").then(pl.lit(value)).otherwise(pl.col("goodput_bps")).cast(dtype)
    result = answer(tmp_path, frame.with_columns(goodput_bps=bad))
    assert result.n == frame.filter(pl.col("cc") == "cubic").height
    assert result.overall.verdict == NOT_ENOUGH
    assert not result.parts


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_non_finite_connection_throughput_is_unknown(tmp_path: Path, value: float) -> None:
    rows = [
        synthetic.closed(n, cc=("bbr", "cubic")[n % 2], remote_address=f"198.51.{n % 100}.0/24") for n in range(2000)
    ]
    frame = whole(pl.DataFrame(rows))
    bad = pl.when(pl.col("connection") < 400).then(pl.lit(value)).otherwise(pl.col("busy_goodput_bps"))
    result = answer(tmp_path, frame.with_columns(busy_goodput_bps=bad))
    assert result.n == 1600
    compared = result.overall.comparisons["throughput"].difference
    assert compared
    assert compared.treatment.mean < 1e12
    assert compared.control.mean < 1e12


def test_a_nan_bucket_is_unknown(tmp_path: Path) -> None:
    bad = [float("nan"), float("inf"), float("-inf"), None]
    frame = Traffic().frame()
    frame = frame.with_columns(app_limited_share=pl.Series([bad[n % 4] for n in range(frame.height)], dtype=pl.Float64))
    result = answer(tmp_path, frame, Question(segments=("app_limited_share",), replicates=300))
    assert [part.title for part in result.parts] == ["unknown"]


def test_an_unknown_part_that_gains_is_judged_but_not_rolled_out(tmp_path: Path) -> None:
    frame = Traffic(effect=lambda _: 0.7).frame()
    value = pl.when(pl.col("connection") % 2 == 0).then(0.1)
    result = answer(
        tmp_path, frame.with_columns(app_limited_share=value), Question(segments=("app_limited_share",), replicates=300)
    )
    assert verdicts(result) == {"unknown": "bbr", "0.1": "bbr"}
    assert [step.part.title for step in result.rollout] == ["0.1"]


@pytest.mark.parametrize("end", [0, None])
def test_rows_without_an_end_time_are_counted_but_not_judged(tmp_path: Path, end: int | None) -> None:
    frame = Traffic().frame()
    with pytest.raises(ThalwegError, match="none of the 20,000 rows is a closed connection or a transfer"):
        answer(tmp_path, frame.with_columns(end_us=pl.lit(end, pl.Int64)))


def test_negative_numbers_are_unknown(tmp_path: Path) -> None:
    frame = Traffic().frame()
    result = answer(tmp_path, frame.with_columns(rtt_min_us=pl.lit(-(2**63))), Question(replicates=300))
    assert {part.names[0] for part in result.parts} == {"unknown"}
    with pytest.raises(ThalwegError, match="none of the 20,000 rows"):
        answer(tmp_path, frame.with_columns(fct_us=pl.lit(-5)))
