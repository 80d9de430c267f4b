"""Rules about upstream flows and background traffic, from the host `receiver` through path.reverse."""

from pathlib import Path

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes

CAPACITIES = ("rate", "steps", "trace")

UNLIMITED = "unlimited"


def goes_up(table: Raw) -> bool:
    """Return whether a [[flow]] or [[background]] is upstream.

    >>> goes_up({"direction": "up"}), goes_up({})
    (True, False)
    """
    return bool(table.get("direction", "down") == "up")


def sender_of(flow: Raw) -> str:
    """Return the host that sends the data of a flow."""
    return "receiver" if goes_up(flow) else str(flow.get("host", "sender"))


def has_up(raw: Raw) -> bool:
    """Return whether the host `receiver` sends anything except acknowledgements."""
    return any(goes_up(table) for key in ("flow", "background") for _, table in values.tables(raw, key))


def senders_of_data(raw: Raw) -> set[str]:
    """Return the names of the hosts that send the data of any flow."""
    return {sender_of(flow) for _, flow in values.tables(raw, "flow")}


def receivers_of_data(raw: Raw) -> set[str]:
    """Return the names of the hosts that receive the data of any flow."""
    return {str(flow.get("host", "sender")) if goes_up(flow) else "receiver" for _, flow in values.tables(raw, "flow")}


def check(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check that something limits each upstream flow."""
    reverse = values.table(values.table(raw, "path"), "reverse")
    if any(key in reverse for key in CAPACITIES):
        return
    hosts = values.table(raw, "host")
    for index, flow in values.tables(raw, "flow"):
        is_unlimited = (
            not any(key in flow for key in ("requests", "repeat", "app")) and flow.get("size", UNLIMITED) == UNLIMITED
        )
        host = flow.get("host", "sender")
        buffers = (("receiver", "sndbuf_max"), (host, "rcvbuf_max"))
        has_window = any(key in values.table(hosts, name) for name, key in buffers if isinstance(name, str))
        if goes_up(flow) and is_unlimited and not has_window:
            name = flow.get("name", index)
            mistakes.add_missing(
                ("flow", index, "direction"),
                f"nothing limits the flow `{name}`, which goes up: path.reverse has no rate",
                expected="a rate, steps or a trace in [path.reverse], a size of the flow, or host.receiver.sndbuf_max",
                hint='add [path.reverse] with rate = "10Mbps"',
                instead=tuple(f"path.reverse.{key}" for key in CAPACITIES),
            )
