#!/usr/bin/env python3
"""Measures the effect of `thalweg-agent tune` on connections over paths with losses, small buffers, or changes.

    .venv/bin/python bench/tuning.py                   about a quarter of an hour, as root
    .venv/bin/python bench/tuning.py --quick           half a minute: a smoke test
    ... --only "10 % loss"                             one case; `cost`: four minutes, the cost of the kernel side
    ... --policy bpftune                               another policy; also epsilon-greedy, ucb ...
    ... --out FILE                                    all measurements, for programs

A client fetches from a server over consecutive connections. The server's default is reno, and no application sets an
algorithm, so any gain is due to the agent's choice among reno, cubic and bbr. The same path is also measured with each
algorithm alone. The client's nftables drops packets, a token bucket limits the rate and the buffer, and a program
delays packets. All run on one machine, whose speed limits paths without a configured rate.

Requirements after the 20th connection: in cases where BBR is better, 80 % use BBR, and their mean goodput is at most
5 % below that of BBR alone; in the case without loss, the mean goodput of all connections is at most 3 % below the best
algorithm's. If a path becomes lossy, the agent adapts within 30 connections. Held-out connections do not count; the
cost of exploration is reported separately.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from recorder import price
from recorder.machine import AGENT, Machine
from tuner.network import Fetched, Network, Road

ARMS = ("reno", "cubic", "bbr")
SETTLED = 20
"""Number of initial connections for learning, which are not judged."""
FOLLOWED = 30
"""Maximum number of connections after a change until the policy must have adapted."""
ROOM_BYTES = 300_000


@dataclass(frozen=True)
class Case:
    """A path, and the connections over it."""

    name: str
    road: Road
    size: int
    wanted: str | None
    """Algorithm that most connections should use; None: no algorithm is better."""
    turns: Road | None = None
    """Path after the change, half-way through the connections; only its loss applies. None: no change."""


CASES = (
    Case("10 % loss", Road(loss=0.1), 3_000_000, "bbr"),
    Case("10 % loss, 40 ms", Road(loss=0.1, delay_ms=40), 300_000, "bbr"),
    Case("no loss", Road(rate_mbps=200, buffer_bytes=ROOM_BYTES), 1_000_000, None),
    Case("shallow buffer", Road(delay_ms=40, rate_mbps=100, buffer_bytes=25_000), 2_000_000, "bbr"),
    Case("turns lossy", Road(rate_mbps=200, buffer_bytes=ROOM_BYTES), 1_000_000, "bbr", Road(loss=0.1)),
)


@dataclass
class Found:
    """Results of a case."""

    alone_bps: dict[str, float] = field(default_factory=dict)
    """Mean goodput if all connections use one algorithm, by algorithm."""
    untuned: list[Fetched] = field(default_factory=list)
    tuned: list[Fetched] = field(default_factory=list)
    held_out: list[bool] = field(default_factory=list)
    status: str = ""

    def judged(self, case: Case) -> list[Fetched]:
        """Return the treated connections after the first `SETTLED`, or after the first `FOLLOWED` since the change."""
        return self._treated(self._first(case) + (FOLLOWED if case.turns else SETTLED))

    def learning(self, case: Case) -> list[Fetched]:
        """Return all treated connections; if the path changes, those since the change."""
        return self._treated(self._first(case))

    def _first(self, case: Case) -> int:
        return len(self.tuned) // 2 if case.turns else 0

    def _treated(self, first: int) -> list[Fetched]:
        return [one for one, held in zip(self.tuned[first:], self.held_out[first:], strict=True) if not held]


def measure(case: Case, folder: Path, count: int, alone: int, options: list[str]) -> Found:
    """Measure a case with each algorithm alone and then with the agent."""
    result = Found()
    with ExitStack() as stack:
        network = Network(folder, stack, case.road)
        programs = stack.enter_context(network.programs(case.size))
        result.untuned = [programs.fetch() for _ in range(3)]
        if case.turns:
            network.lose(case.turns.loss)
        for arm in ARMS if alone else ():
            with network.only(",".join(ARMS), arm):
                # A few measurements are sufficient for algorithms that are slower than BBR.
                times = alone if arm == "bbr" or not case.wanted else max(alone // 8, 3)
                result.alone_bps[arm] = statistics.fmean(programs.fetch().goodput_bps for _ in range(times))
        if case.turns:
            network.lose(case.road.loss)
        with network.tuning(",".join(ARMS), *options) as tuner:
            for number in range(count):
                if case.turns and number == count // 2:
                    network.lose(case.turns.loss)
                result.tuned.append(programs.fetch())
            result.status = tuner.status()
            result.held_out = tuner.held_out()
    return result


def report(case: Case, result: Found) -> dict[str, Any]:
    """Print the results beside the goals, and return them."""
    judged = result.judged(case)
    used = {arm: sum(one.cc == arm for one in judged) / len(judged) for arm in ARMS}
    mean_bps = statistics.fmean(one.goodput_bps for one in judged)
    print(f"{case.name}: {len(result.tuned)} connections, {sum(result.held_out)} held out, {len(judged)} judged")
    print("  got       " + ", ".join(f"{arm} {100 * share:.0f} %" for arm, share in used.items() if share))
    print(f"  goodput   {mean_bps / 1e6:.2f} Mbit/s, mean of all")
    numbers: dict[str, Any] = {"used": used, "mean_bps": mean_bps}
    if case.wanted:
        mine = [one.goodput_bps for one in judged if one.cc == case.wanted]
        numbers["wanted_bps"] = statistics.fmean(mine) if mine else 0.0
        print(f"  bar       {100 * used[case.wanted]:.0f} % use {case.wanted}; goal: 80 %")
    if result.alone_bps:
        print("  alone     " + ", ".join(f"{arm} {bps / 1e6:.2f}" for arm, bps in result.alone_bps.items()))
        best = case.wanted or max(result.alone_bps, key=lambda arm: result.alone_bps[arm])
        best_bps, compared = result.alone_bps[best], numbers.get("wanted_bps", mean_bps)
        numbers["beside_best"] = compared / best_bps - 1
        bar = "-5 %" if case.wanted else "-3 %"
        print(f"  bar       {100 * numbers['beside_best']:+.1f} % against {best} alone; goal: at least {bar}")
        learning = [one.goodput_bps for one in result.learning(case)]
        numbers["exploring"] = statistics.fmean(learning) / best_bps - 1
        print(f"  exploring {100 * numbers['exploring']:+.1f} %: all {len(learning)} connections, including learning")
    print("\n".join("    " + line for line in result.status.splitlines()))
    return numbers | asdict(result)


def cost(place: price.Place, windows: int, window_s: float) -> dict[str, Any]:
    """Measure the cost for short connections of the eBPF program that records and chooses, part by part."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thalweg-bench-")))
        settings = folder / "cubic.toml"
        settings.write_text('policy = "static"\nholdout = 0.0\n[static]\ncubic = 1.0\n')

        def tune(name: str, *more: str) -> price.Kind:
            # The agent has a separate state file, so that the learned state of this machine's own agent is unchanged.
            options = ("--private", "--state", str(folder / f"{name}.json"), "--grace", "0s", "--arms", ",".join(ARMS))
            return price.Kind(name, "tune", (*options, *more))

        kinds = [
            price.Kind("records"),
            tune("chooses", "--config", str(settings), "--dry-run"),
            tune("sets", "--config", str(settings)),
            tune("tunes"),
        ]
        machine = Machine(folder, stack)
        machine.inside(machine.server, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        prices = dict(zip(TITLES, price.side_by_side(machine, kinds, place, windows, window_s), strict=True))
    print(f"cost for short connections {place.name}, measured alternately:")
    report_ = {}
    for name, title in TITLES.items():
        print(f" {title}")
        report_[name] = prices[name].report()
    print(f"  choosing takes {beside(prices['chooses'], prices['records'])} of each connection")
    print(f"  setting an algorithm takes {beside(prices['sets'], prices['chooses'])}")
    return report_


TITLES = {
    "records": "recording only",
    "chooses": "choosing cubic for all, without setting it (dry run)",
    "sets": "choosing cubic for all, and setting it",
    "tunes": "tuning: 5 % are held out, the others get reno, cubic or bbr",
}


def beside(one: price.Price, other: price.Price) -> str:
    """Describe the difference between two costs, from the differences per window."""
    more = [mine - theirs for mine, theirs in zip(one.ns_per_connection, other.ns_per_connection, strict=True)]
    if len(more) < 2:
        return f"{more[0]:.0f} ns"
    low, middle, high = statistics.quantiles(more, n=4)
    return f"{middle:.0f} ns (half of the windows: {low:.0f} to {high:.0f} ns)"


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure the effect of `thalweg-agent tune` on connections.")
    parser.add_argument("--quick", action="store_true", help="quick test: few small connections in three cases")
    parser.add_argument("--only", choices=[*(case.name for case in CASES), "cost"], help="measure only this")
    parser.add_argument("--connections", type=int, default=200, help="connections in each case (default: %(default)s)")
    parser.add_argument(
        "--alone", type=int, default=80, help="connections with each algorithm alone (default: %(default)s)"
    )
    parser.add_argument("--policy", default="bayes", help="policy of the agent (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    why_not = None if os.geteuid() == 0 else "only root may tune"
    why_not = why_not or (None if AGENT.exists() else "thalweg-agent is missing: make agent")
    if why_not:
        print(f"bench: tuning is left out: {why_not}", file=sys.stderr)
        return
    cases = [case for case in CASES if chosen.only in (None, case.name)]
    count, alone = chosen.connections, chosen.alone
    if chosen.quick:
        cases = [replace(case, size=min(case.size, 500_000)) for case in cases[:3]]
        count, alone = 40, 0
    costs: dict[str, Any] = {}
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
            costs[case.name] = report(case, measure(case, Path(folder), count, alone, ["--policy", chosen.policy]))
    if chosen.only in (None, "cost"):
        windows, window_s = (1, 0.4) if chosen.quick else (price.WINDOWS, price.WINDOW_S)
        for place in price.places():
            costs[f"cost {place.name}"] = cost(place, windows, window_s)
    if chosen.out:
        chosen.out.write_text(json.dumps(costs, indent=2) + "\n")


if __name__ == "__main__":
    main()
