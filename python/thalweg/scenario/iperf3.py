"""`engine.traffic = "iperf3"`: adds iperf3 as the program of every flow without one."""

from thalweg.scenario import values
from thalweg.scenario.document import Raw

SERVER = "iperf3 -s -p {port}"

CLIENT = "iperf3 -c {server} -p {port} -C {cc}"

UNTIL_STOPPED = "-t 86400"
"""Option for a duration of one day; iperf3 is stopped when the flow or the experiment ends."""


def is_chosen(raw: Raw) -> bool:
    """Return whether a scenario uses iperf3 for its flows without a program."""
    return values.table(raw, "engine").get("traffic") == "iperf3"


def with_programs(flow: Raw) -> Raw:
    """Return a flow with iperf3 as its program; a flow that has a program is unchanged.

    >>> with_programs({"name": "bulk", "cc": "bbr"})["program"]["client"]
    'iperf3 -c {server} -p {port} -C {cc} -t 86400'
    """
    if "program" in flow:
        return flow
    amount = UNTIL_STOPPED if flow.get("size", "unlimited") == "unlimited" else "-n {size}"
    return {**flow, "program": {"server": SERVER, "client": f"{CLIENT} {amount}", "sends": "client"}}
