"""`engine.traffic = "iperf3"`: a short form of the programs that make every flow."""

from thalweg.scenario import values
from thalweg.scenario.document import Raw

SERVER = "iperf3 -s -p {port}"

CLIENT = "iperf3 -c {server} -p {port} -C {cc}"

UNTIL_STOPPED = "-t 86400"
"""iperf3 is stopped when the flow or the experiment ends."""


def is_chosen(raw: Raw) -> bool:
    """Return whether iperf3 makes the flows of a scenario that have no program."""
    return values.table(raw, "engine").get("traffic") == "iperf3"


def with_programs(flow: Raw) -> Raw:
    """Return a flow with iperf3 as its program; one that has a program stays as it is.

    >>> with_programs({"name": "bulk", "cc": "bbr"})["program"]["client"]
    'iperf3 -c {server} -p {port} -C {cc} -t 86400'
    """
    if "program" in flow:
        return flow
    amount = UNTIL_STOPPED if flow.get("size", "unlimited") == "unlimited" else "-n {size}"
    return {**flow, "program": {"server": SERVER, "client": f"{CLIENT} {amount}", "sends": "client"}}
