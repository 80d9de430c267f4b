"""A single network must not determine a class of destinations: the effective number of networks behind a verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from synthetic_traffic import Traffic, write
from thalweg.advise import NO_DIFFERENCE, NOT_ENOUGH, Answer, Design, Part, Question, advise
from thalweg.advise.answers import policy_rules
from thalweg.advise.statistics.effects import Effect
from thalweg.advise.statistics.networks import Heavy, Networks

QUICK = Question(segments=("rtt",), replicates=200)
LARGE = "203.0.113.0/24"


def answer(folder: Path, frame: pl.DataFrame, question: Question = QUICK) -> Answer:
    write(folder / "some.parquet", frame)
    return advise([folder], question)


def codes(advice: Answer) -> set[str]:
    return {caution.code for caution in advice.cautions}


def networks(part: Part, metric: str = "completion_time") -> Networks:
    networks_ = part.comparisons[metric].networks
    assert networks_
    return networks_


def near(effect: float, **more: Any) -> pl.DataFrame:
    """Return the traffic of one class of round-trip times with one effect."""
    return (
        Traffic(effect=lambda _: effect, rows=10_000, **more).frame().with_columns(rtt_min_us=pl.lit(40_000, pl.UInt64))
    )


def from_one_address(frame: pl.DataFrame, address: str = LARGE) -> pl.DataFrame:
    return frame.with_columns(remote_address=pl.lit(address))


def alternating(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return (columns["hour"] % 2) * 1.0


def dominated_by_one(**more: Any) -> pl.DataFrame:
    """Return traffic in which the treatment halves the times of the large network and increases those of all others by
    a third.
    """
    return pl.concat([from_one_address(near(0.5, **more)), near(1.33, seed=2, **more).head(1_500)])


SWITCHBACK = Question(segments=("rtt",), design=Design("switchback"), replicates=200)


@pytest.mark.parametrize(
    ("frame", "question"),
    [
        (dominated_by_one(), QUICK),
        (dominated_by_one(), Question(segments=("size",), replicates=200)),
        (dominated_by_one(), Question(segments=("machine",), replicates=200)),
        (dominated_by_one(), Question(segments=(), replicates=200)),
        (dominated_by_one(), Question(segments=("rtt",), cluster="prefix-hour", replicates=200)),
        (dominated_by_one(hours=96, share=alternating), SWITCHBACK),
        (from_one_address(near(0.5)), QUICK),
        (from_one_address(near(0.5), "203.0.113.7"), QUICK),
        (pl.concat([from_one_address(near(0.5)), from_one_address(near(1.33, seed=2), "198.18.0.0/24")]), QUICK),
    ],
    ids=["rtt", "size", "column", "all", "hours drawn", "switchback", "one network", "one client", "two, opposite"],
)
def test_a_class_with_few_networks_has_no_verdict_and_no_rule(
    tmp_path: Path, frame: pl.DataFrame, question: Question
) -> None:
    advice = answer(tmp_path, frame, question)
    for part in advice.parts:
        assert part.verdict == NOT_ENOUGH
        assert "too few networks" in part.reason
        assert networks(part).are_few
    assert advice.parts
    assert "few-networks" in codes(advice)
    assert not advice.rollout
    assert "[[rules]]" not in policy_rules.text(advice)


def test_the_network_alone_has_its_verdict(tmp_path: Path) -> None:
    advice = answer(tmp_path, dominated_by_one(), Question(segments=("prefix",), replicates=200))
    assert {part.title: part.verdict for part in advice.parts} == {LARGE: "bbr"}
    assert "few-networks" not in codes(advice)
    assert [step.part.title for step in advice.rollout] == [LARGE]
    assert networks(advice.overall).are_few
    assert advice.overall.verdict == NOT_ENOUGH


def test_each_metric_has_networks_of_its_own(tmp_path: Path) -> None:
    """Completion times come from many networks, but nine tenths of the throughput samples from one."""
    small = near(1.0)
    large = near(0.5, seed=3, size_bytes=(4_000_000, 9_000_000))
    large = pl.concat([from_one_address(large.head(1_800)), large.tail(200)])
    advice = answer(tmp_path, pl.concat([small, large]))
    (part,) = advice.parts
    assert part.comparisons["throughput"].verdict == NOT_ENOUGH
    assert networks(part, "throughput").heavy[0].network == LARGE
    assert networks(part, "throughput").are_few
    assert not networks(part).are_few
    assert part.verdict != "bbr"
    assert not advice.rollout


def test_rows_are_weighted_by_their_sampling_ratio(tmp_path: Path) -> None:
    one_in = pl.when(pl.int_range(pl.len()) < 200).then(10_000).otherwise(1).cast(pl.UInt64)
    address = pl.when(pl.int_range(pl.len()) < 200).then(pl.lit(LARGE)).otherwise(pl.col("remote_address"))
    advice = answer(tmp_path, near(0.7).with_columns(sampled_one_in=one_in, remote_address=address))
    assert networks(advice.parts[0]).heavy[0].share > 0.9
    assert networks(advice.parts[0]).are_few


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("question", [QUICK, SWITCHBACK], ids=["ab", "switchback"])
def test_many_similar_networks_cause_no_warning(tmp_path: Path, seed: int, question: Question) -> None:
    share = {"share": alternating, "hours": 96} if question.design.name == "switchback" else {}
    advice = answer(tmp_path, near(1.0, seed=seed, **share), question)
    assert not codes(advice) & {"few-networks", "one-network", "unknown-networks"}
    assert advice.parts[0].verdict in (NO_DIFFERENCE, NOT_ENOUGH)
    assert "networks" not in advice.parts[0].reason


def test_the_effective_sample_size_is_kishs_of_the_smaller_arm(tmp_path: Path) -> None:
    frame = near(0.7)
    advice = answer(tmp_path, frame)
    counts = frame.group_by("cc", "remote_address").len()
    kish = [n.sum() ** 2 / (n**2).sum() for n in (counts.filter(cc=cc)["len"] for cc in ("bbr", "cubic"))]
    assert networks(advice.parts[0]).effective == pytest.approx(min(kish), rel=1e-6)
    assert networks(advice.parts[0]).count == frame["remote_address"].n_unique() == 400
    assert advice.parts[0].verdict == "bbr"


def test_an_effect_that_depends_on_one_network_has_no_verdict(tmp_path: Path) -> None:
    """The network has a fifth of the samples, so there are enough networks."""
    share: dict[str, Any] = {"share": alternating, "hours": 96}
    one = from_one_address(near(0.2, seed=2, **share).head(2_500))
    advice = answer(tmp_path, pl.concat([near(1.0, **share), one]), SWITCHBACK)
    (part,) = advice.parts
    assert not networks(part).are_few
    assert part.verdict == NOT_ENOUGH
    assert f"{LARGE} has 2" in part.reason
    assert "one-network" in codes(advice)
    assert not advice.rollout


def heavy(*added: float | None) -> Sequence[Heavy]:
    return [Heavy(f"198.18.{number}.0/24", 0.1, networks_added) for number, networks_added in enumerate(added)]


@pytest.mark.parametrize(
    ("ratio", "added", "carrier"),
    [
        (0.5, [0.1, -0.1], None),
        (0.5, [0.1, -0.4], 1),
        (2.0, [0.4, -0.4], 0),
        (2.0, [0.3, -0.9], None),
        (2.0, [0.1, None], 1),
        (2.0, [], None),
    ],
)
def test_a_carrier_contributing_over_half_of_the_effect_is_reported(
    ratio: float, added: Sequence[float | None], carrier: int | None
) -> None:
    of = heavy(*added)
    advice = Networks(100, 50.0, 0.0, tuple(of)).carrier(Effect(ratio, ratio * 0.9, ratio * 1.1, 0.0))
    assert advice == (None if carrier is None else of[carrier])


def test_networks_without_addresses_are_not_merged(tmp_path: Path) -> None:
    advice = answer(tmp_path, near(0.7).with_columns(remote_address=pl.lit(None, pl.String)))
    (part,) = advice.parts
    assert part.verdict == "bbr"
    assert networks(part).effective is None
    assert networks(part).unknown_share == 1
    assert "unknown-networks" in codes(advice)


def test_rows_of_other_algorithms_are_reported_but_not_compared(tmp_path: Path) -> None:
    frame = near(0.7)
    others = [frame.head(n).with_columns(cc=pl.lit(cc), cc_at_open=pl.lit(cc)) for cc, n in (("reno", 7), ("htcp", 3))]
    advice = answer(tmp_path, pl.concat([frame, *others]))
    assert advice.other_algorithms == {"reno": 7, "htcp": 3}
    assert advice.n == frame.height


@pytest.mark.parametrize(
    ("every_hours", "message"), [(1, "--design switchback --every 1h"), (6, "--design switchback --every 6h")]
)
def test_alternating_hours_are_reported_as_a_switchback(tmp_path: Path, every_hours: int, message: str) -> None:
    advice = answer(tmp_path, near(0.7, hours=48, share=lambda columns: (columns["hour"] // every_hours % 2) * 1.0))
    assert "alternating-hours" in codes(advice)
    assert message in advice.headline


def test_consecutive_algorithms_are_reported_as_before_and_after(tmp_path: Path) -> None:
    advice = answer(tmp_path, near(0.7, hours=48, share=lambda columns: (columns["hour"] >= 24) * 1.0))
    assert "one-after-the-other" in codes(advice)
    assert "--design before-after --at 2026-11-22T12:00" in advice.headline


def limited(frame: pl.DataFrame, share: float) -> pl.DataFrame:
    """Return the rows after making a fraction of them receiver-limited and slow."""
    is_limited = pl.int_range(pl.len()) % 100 < share * 100
    slow = pl.when(is_limited).then(9_000_000).otherwise(pl.col("fct_us")).cast(pl.UInt64)
    return frame.with_columns(
        fct_us=slow,
        busy_us=slow,
        rwnd_limited_us=pl.when(is_limited).then(slow // 2 + 1).otherwise(slow // 4).cast(pl.UInt64),
    )


def test_receiver_limited_transfers_are_counted_and_can_be_excluded(tmp_path: Path) -> None:
    frame = limited(near(0.7), 0.6)
    advice = answer(tmp_path, frame)
    (part,) = advice.parts
    assert part.comparisons["completion_time"].receiver_limited == pytest.approx((0.6, 0.6), abs=0.03)
    assert "receiver-limited" in codes(advice)
    without = advise([tmp_path], Question(segments=("rtt",), without_receiver_limited=True, replicates=200))
    assert (without.receiver_limited, without.n) == (6_000, 4_000)
    gain = without.parts[0].comparisons["completion_time"].gain
    assert gain
    assert gain.low < 0.3 < gain.high
    assert "receiver-limited" not in codes(without)


def test_few_receiver_limited_transfers_cause_no_warning_and_unknown_ones_are_not_counted(tmp_path: Path) -> None:
    assert "receiver-limited" not in codes(answer(tmp_path, limited(near(0.7), 0.05)))
    (part,) = answer(tmp_path, near(0.7)).parts
    assert part.comparisons["completion_time"].receiver_limited == (None, None)
