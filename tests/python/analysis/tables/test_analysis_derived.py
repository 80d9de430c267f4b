"""Numeric path properties derived from a plan, and harm."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow, link
from thalweg import analysis
from thalweg.results import open_run


def derived(directory: Path, traces: dict[str, list[int]] | None = None, **changes: Any) -> dict[str, float]:
    synthetic = SyntheticRun(directory / "run", [experiment(**changes)], traces=traces or {})
    synthetic.transfer(0, 0)
    return analysis.derived(open_run(synthetic.write())).row(0, named=True)


def test_derived_path_values_are_correct(tmp_path: Path) -> None:
    host = {"sndbuf_max_bytes": 1, "rcvbuf_max_bytes": 80_000_000, "delay_jitter_ns": 0}
    forward = link(40_000_000, 112_500, loss={"kind": "bernoulli", "ratio": 0.01})
    values = derived(
        tmp_path,
        forward=forward,
        hosts={"sender": host, "receiver": host},
        flows=[flow(count=3), flow("other", "bbr_cpu")],
    )
    assert values == {
        "experiment": 0,
        "rate_bps": 40e6,
        "rtt_s": 0.045,
        "bdp_bytes": 225_000,
        "buffer_bytes": 112_500,
        "buffer_bdp": 0.5,
        "loss": 0.01,
        "rcvbuf_bytes": 80e6,
        "flows": 4,
        "bbr_fraction": 0.25,
        "cpu_share": None,
        "cpu_slice_s": None,
        "cpu_period_s": None,
    }


def test_a_shared_cpu_is_that_of_the_host_that_sends(tmp_path: Path) -> None:
    host = {"sndbuf_max_bytes": 1, "rcvbuf_max_bytes": 1, "delay_jitter_ns": 0}
    cpu = {"slice_ns": 10_000_000, "period_ns": 40_000_000, "per_packet_ns": 1000, "per_ack_ns": 1000}
    values = derived(tmp_path, hosts={"sender": host | {"cpu": cpu}, "receiver": host})
    assert (values["cpu_share"], values["cpu_slice_s"], values["cpu_period_s"]) == (0.25, 0.01, 0.04)


def test_capacity_in_packets_assumes_full_sized_packets(tmp_path: Path) -> None:
    values = derived(tmp_path, forward=link(buffer={"kind": "packets", "packets": 100}))
    assert (values["buffer_bytes"], values["buffer_bdp"]) == (150_000, pytest.approx(2 / 3))


def test_an_unlimited_link_has_no_rate_and_no_buffer_size(tmp_path: Path) -> None:
    values = derived(tmp_path, forward=link(None))
    assert [values[key] for key in ("rate_bps", "bdp_bytes", "buffer_bytes", "buffer_bdp")] == [None] * 4


def test_the_rate_is_the_first_step_or_the_trace_mean(tmp_path: Path) -> None:
    steps = [{"at_ns": 0, "rate_bps": 10_000_000}, {"at_ns": 10**9, "rate_bps": 1}]
    values = derived(tmp_path / "steps", forward=link(capacity={"kind": "steps", "steps": steps}))
    assert values["rate_bps"] == 10e6
    # The trace has three packets of 1500 bytes in 4 ms.
    capacity = {"kind": "trace", "trace": "lte"}
    values = derived(tmp_path / "trace", {"lte": [1, 1, 4]}, forward=link(capacity=capacity))
    assert values["rate_bps"] == 9e6


def test_two_state_loss_is_weighted_by_time(tmp_path: Path) -> None:
    loss = {"kind": "gilbert_elliott", "p": 0.01, "r": 0.04, "loss_bad": 0.5, "loss_good": 0.1}
    assert derived(tmp_path, forward=link(loss=loss))["loss"] == pytest.approx(0.2 * 0.5 + 0.8 * 0.1)


def test_a_rate_of_zero_has_no_buffer_size_in_bdp(tmp_path: Path) -> None:
    steps = [{"at_ns": 0, "rate_bps": 0}, {"at_ns": 10**9, "rate_bps": 10_000_000}]
    values = derived(tmp_path, forward=link(capacity={"kind": "steps", "steps": steps}))
    assert (values["bdp_bytes"], values["buffer_bytes"], values["buffer_bdp"]) == (0, 225_000, None)


def test_harm_is_the_lost_fraction_of_solo_performance() -> None:
    assert analysis.harm(25.0, solo=100.0, more_is_better=True) == 0.75
    assert analysis.harm(2.0, solo=1.0, more_is_better=False) == 0.5
    assert analysis.harm(120.0, solo=100.0, more_is_better=True) == pytest.approx(-0.2)


def test_every_derived_key_is_documented() -> None:
    text = " ".join((Path(__file__).parents[4] / "docs/reference/analysis.md").read_text().split())
    for key, about in analysis.DERIVED.items():
        assert f"| `{key}` | {about} |" in text, f"docs/reference/analysis.md: {key} differs"


@pytest.mark.parametrize(("losses", "expected"), [((None, None), 0.01), ((0.0, 0.5), None)])
def test_a_loss_that_changes_over_time_is_unknown(
    tmp_path: Path, losses: tuple[float | None, ...], expected: float | None
) -> None:
    points = [{"at_ns": number, "rate_bps": None, "delay_ns": 10, "loss": loss} for number, loss in enumerate(losses)]
    forward = link(loss={"kind": "bernoulli", "ratio": 0.01}, profile="p")
    run = SyntheticRun(
        tmp_path / "run", [experiment(forward=forward)], profiles={"p": {"period_ns": None, "points": points}}
    )
    run.transfer(0, 0)
    assert analysis.derived(open_run(run.write()))["loss"].to_list() == [expected]
