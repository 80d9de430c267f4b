"""Rules between the keys of [path], [path.reverse] and [host.*]."""

from itertools import pairwise
from pathlib import Path

from thalweg.errors import ThalwegError
from thalweg.scenario import traces, values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_direction, rules_queue
from thalweg.scenario.rules.carriers import Carrier
from thalweg.scenario.rules.rules_queue import MTU_BYTES
from thalweg.scenario.text import quantities, words
from thalweg.scenario.text.quantities import PacketCount

CAPACITIES = ("rate", "steps", "trace")

MIN_BUFFER_BYTES = {"sndbuf_max": 4608, "rcvbuf_max": 2304}
"""Linux's SOCK_MIN_SNDBUF and SOCK_MIN_RCVBUF on 64-bit machines."""


def check(raw: Raw, folder: Path, mistakes: Mistakes) -> None:
    """Check the path; relative names of traces are resolved in `folder`."""
    path = values.table(raw, "path")
    if values.quantity(path, "rtt", quantities.time) == 0:
        mistakes.add(
            "out-of-range",
            ("path", "rtt"),
            "`path.rtt` is zero",
            expected="a time above zero",
            hint='rtt = "1ms" is a short path',
        )
    if path.get("ip") == 5:  # the schema rejects values outside 4 to 6
        mistakes.add("out-of-range", ("path", "ip"), "`path.ip` is 5", expected="4 or 6", hint="ip = 6 is IPv6")
    if isinstance(raw.get("path"), dict) and "rtt" not in path:
        mistakes.add_missing(
            ("path",),
            "[path] has no rtt",
            expected="a round-trip time, or a preset that sets it",
            hint='add rtt = "50ms" to [path]',
            instead=("path.rtt",),
        )
    _capacity(path, ("path",), folder, mistakes, is_required="path" in raw and isinstance(raw["path"], dict))
    _room(path, ("path",), path, folder, mistakes)
    if "duration" not in raw:
        _passable(path, ("path",), mistakes)
    rules_queue.check(path, ("path",), mistakes)
    if isinstance(reverse := path.get("reverse"), dict):
        key_path: KeyPath = ("path", "reverse")
        _capacity(reverse, key_path, folder, mistakes, is_required=False)
        _room(reverse, key_path, path, folder, mistakes)
        rules_queue.check(reverse, key_path, mistakes)
        _rtt_of_both(path, reverse, folder, mistakes)
        if "duration" not in raw:
            _passable(reverse, key_path, mistakes)


def _capacity(link: Raw, key_path: KeyPath, folder: Path, mistakes: Mistakes, *, is_required: bool) -> None:
    trace = values.trace_of(link, folder)
    sets_rate = {
        "rate": True,
        "steps": any("rate" in step for _, step in values.tables(link, "steps")),
        "trace": trace is not None and trace.has_rate,
    }
    capacities = [key for key in CAPACITIES if key in link and (sets_rate[key] or "rate" not in link)]
    name = ".".join(map(str, key_path))
    if capacities == ["trace"] and is_required and trace and not trace.has_rate:
        message = f"the trace `{link['trace']}` has no rate_bps, and [{name}] has no rate"
        _no_rate((*key_path, "trace"), message, "a rate in the trace, or in addition to it", mistakes)
    if capacities == ["steps"] and is_required and not sets_rate["steps"] and link.get("steps"):
        message = f"no step of `{name}.steps` sets a rate, and [{name}] has none"
        _no_rate((*key_path, "steps"), message, "a rate in the first step, or in addition to the steps", mistakes)
    if len(capacities) > 1:
        mistakes.add(
            "conflict",
            (*key_path, capacities[1]),
            f"[{name}] has {' and '.join(f'`{key}`' for key in capacities)}",
            expected="exactly one of rate, steps, trace",
            hint=f"remove all but one of {', '.join(capacities)}",
        )
    if not capacities and is_required:
        mistakes.add_missing(
            key_path,
            f"[{name}] has no capacity",
            expected="exactly one of rate, steps, trace",
            hint=f'add rate = "40Mbps" to [{name}]',
            instead=tuple(f"{name}.{key}" for key in CAPACITIES),
        )
    if values.quantity(link, "rate", quantities.rate) == 0:
        mistakes.add(
            "out-of-range",
            (*key_path, "rate"),
            f"`{name}.rate` is zero: no packet would ever pass",
            expected="a rate above zero",
            hint="an outage is a step: use `steps`",
        )
    if isinstance(link.get("loss"), dict) and any("loss" in step for _, step in values.tables(link, "steps")):
        mistakes.add(
            "conflict",
            (*key_path, "loss"),
            f"`{name}.loss` is a model of bursts, and `{name}.steps` sets loss",
            expected="one of the two",
            hint=f"remove loss from [{name}] or from its steps",
        )
    if isinstance(steps := link.get("steps"), list):
        _steps(steps, (*key_path, "steps"), mistakes)
    if isinstance(trace_name := link.get("trace"), str):
        _trace(folder / trace_name, (*key_path, "trace"), mistakes)


def _no_rate(key_path: KeyPath, message: str, expected: str, mistakes: Mistakes) -> None:
    name = ".".join(map(str, key_path[:-1]))
    mistakes.add("missing-key", key_path, message, expected=expected, hint=f'add rate = "40Mbps" to [{name}]')


def _steps(steps: list[Raw], key_path: KeyPath, mistakes: Mistakes) -> None:
    name = ".".join(map(str, key_path))
    if not steps:
        mistakes.add(
            "empty-list",
            key_path,
            f"`{name}` is an empty list",
            expected="at least one step",
            hint='steps = [{at = "0s", rate = "40Mbps"}]',
        )
    times = [values.quantity(step, "at", quantities.time) if isinstance(step, dict) else None for step in steps]
    rates = [values.quantity(step, "rate", quantities.rate) if isinstance(step, dict) else None for step in steps]
    if times and times[0] not in (0, None):
        mistakes.add(
            "bad-steps",
            (*key_path, 0, "at"),
            f"the first step is at {steps[0]['at']}",
            expected='at = "0s" in the first step',
        )
    for index, (before, after) in enumerate(pairwise(times), 1):
        if before is not None and after is not None and after <= before:
            at, earlier = steps[index]["at"], steps[index - 1]["at"]
            mistakes.add(
                "bad-steps",
                (*key_path, index, "at"),
                f"step {index + 1} is at {at}, after one at {earlier}",
                found=f"at = {at}",
                expected="steps in the order of time, no two at once",
            )
    for index, step in enumerate(steps):
        if isinstance(step, dict) and not {"rate", "rtt", "loss"} & step.keys():
            message = f"step {index + 1} of `{name}` changes nothing"
            mistakes.add("missing-key", (*key_path, index), message, expected="rate, rtt or loss in addition to at")
        if "reverse" in key_path and isinstance(step, dict) and "rtt" in step:
            message = f"step {index + 1} of `{name}` sets rtt, which applies to both directions"
            mistakes.add("no-effect", (*key_path, index, "rtt"), message, expected="rtt in path.steps")
    has_rate = [isinstance(step, dict) and "rate" in step for step in steps]
    if any(has_rate) and not has_rate[0]:
        message = f"the first step of `{name}` has no rate, and a later one has"
        mistakes.add("bad-steps", (*key_path, 0), message, expected="a rate in the first step")
    if any(has_rate) and all(rate == 0 for rate, has in zip(rates, has_rate, strict=True) if has):
        mistakes.add(
            "out-of-range",
            key_path,
            f"every rate of `{name}` is zero: no packet would ever pass",
            expected="a rate above zero in some step",
        )


def _rtt_of_both(path: Raw, reverse: Raw, folder: Path, mistakes: Mistakes) -> None:
    """Check that the reverse path has no CSV trace if path.steps sets rtt."""
    has_rtt_steps = any("rtt" in step for _, step in values.tables(path, "steps"))
    if has_rtt_steps and isinstance(values.trace_of(reverse, folder), traces.Conditions):
        message = "`path.steps` sets rtt, and `path.reverse.trace` is a CSV of changing conditions"
        mistakes.add("conflict", ("path", "reverse", "trace"), message, expected="one of the two")


def _passable(link: Raw, key_path: KeyPath, mistakes: Mistakes) -> None:
    """Check that packets can pass if the experiment ends only when flows complete."""
    name = ".".join(map(str, key_path))
    hint = 'add duration = "60s" at the top of the file'
    if _loses_everything_in_the_end(link.get("loss")):
        message = (
            f"`{name}.loss` loses every packet in the end, so that no flow finishes and the experiment does not end"
        )
        mistakes.add("missing-key", (*key_path, "loss"), message, expected="a loss below 1, or a duration", hint=hint)
    rates, losses = _rates(link), [(i, step["loss"]) for i, step in values.tables(link, "steps") if "loss" in step]
    if rates and rates[-1][1] == 0 and any(rate for _, rate in rates):
        message = f"the last rate of `{name}.steps` is zero, so that no flow finishes and the experiment does not end"
        expected = "a last rate above zero, or a duration"
        mistakes.add("missing-key", (*key_path, "steps", rates[-1][0]), message, expected=expected, hint=hint)
    if losses and losses[-1][1] == 1:
        message = f"the last loss of `{name}.steps` is 1, so that no flow finishes and the experiment does not end"
        expected = "a last loss below 1, or a duration"
        mistakes.add("missing-key", (*key_path, "steps", losses[-1][0]), message, expected=expected, hint=hint)


def _loses_everything_in_the_end(loss: object) -> bool:
    """Return whether packets may pass at first, until a loss burst begins that never ends."""
    if not isinstance(loss, dict) or loss.get("loss_bad", 1) != 1:
        return False
    return bool(loss.get("r") == 0 and loss.get("p") not in (0, 1) and loss.get("loss_good", 0) != 1)


def last_rate(link: Raw) -> int | None:
    """Return the rate in bit/s of a link at the end; None if a trace sets it, or it is unlimited or malformed."""
    rates = _rates(link)
    return rates[-1][1] if rates else values.quantity(link, "rate", quantities.rate)


def _rates(link: Raw) -> list[tuple[int, int | None]]:
    """Return the rates that the steps of a link set, with the indices of the steps; None for a malformed one."""
    steps = values.tables(link, "steps")
    return [(index, values.quantity(step, "rate", quantities.rate)) for index, step in steps if "rate" in step]


def _trace(file: Path, key_path: KeyPath, mistakes: Mistakes) -> None:
    try:
        traces.read(file)
    except ThalwegError as error:
        if error.code != "no-trace":
            mistakes.add_error(error)
            return
        near = (
            words.closest(file.name, [candidate.name for candidate in file.parent.glob("*") if candidate.is_file()])
            if file.parent.is_dir()
            else None
        )
        mistakes.add(
            "no-trace",
            key_path,
            error.message,
            expected="a trace file, looked up in the scenario's folder",
            hint=f"did you mean `{near}`?" if near else None,
        )


def _hint_of_trace(why: str, link: Raw, carrier: Carrier | None) -> list[str]:
    if not why or "trace" not in link:
        return []
    return [traces.HINT if carrier else traces.HINT_CSV]


def _room(link: Raw, key_path: KeyPath, path: Raw, folder: Path, mistakes: Mistakes) -> None:
    name = ".".join((*map(str, key_path), "buffer"))
    if key_path[-1] == "reverse" and not any(key in link for key in CAPACITIES):
        for key in ("buffer", "queue"):
            if key in link:
                mistakes.add(
                    "no-effect",
                    (*key_path, key),
                    f"`path.reverse.{key}` has no effect: without a rate nothing queues on the reverse path",
                    hint='add rate = "10Mbps" to [path.reverse]',
                )
        return
    buffer = values.buffer_of(link)
    if isinstance(buffer, PacketCount):
        if buffer.packets == 0:
            mistakes.add(
                "out-of-range", (*key_path, "buffer"), f"`{name}` is too small for a packet", expected="1packet or more"
            )
        return
    if buffer is None:
        return
    rtt_ns = values.quantity(path, "rtt", quantities.time)
    room = values.room_bytes(buffer, values.rate_for_bdp(link, folder), rtt_ns)
    if room is None or rtt_ns == 0 or values.quantity(link, "rate", quantities.rate) == 0:
        return  # a path without delay or rate is reported elsewhere
    if room < MTU_BYTES:
        carrier = Carrier.of(link, folder)
        trace = values.trace_of(link, folder)
        reason = str(carrier) if carrier else traces.in_words(trace) if trace and trace.has_rate else ""
        why = f": {reason}" if reason and not isinstance(buffer, int) else ""
        mistakes.add(
            "out-of-range",
            (*key_path, "buffer"),
            f"`{name}` is {room} B, which is too small for a packet{why}",
            found=f"{link.get('buffer', '1bdp')}, which is {room} B",
            expected=f"{MTU_BYTES} B or more",
            hint="\n".join([*_hint_of_trace(why, link, carrier), 'the minimum is buffer = "1packet"']),
        )
    if room > quantities.LARGEST:
        mistakes.add(
            "out-of-range",
            (*key_path, "buffer"),
            f"`{name}` is too large",
            found=f"{room} B",
            expected="less than 2^64 B",
        )


def check_hosts(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check that every host is used, and the limits of its socket buffers."""
    hosts = values.table(raw, "host")
    flows = values.tables(raw, "flow")
    senders = {sender for _, flow in flows if isinstance(sender := flow.get("host"), str)} | {"sender"}
    for name in hosts:
        host = values.table(hosts, name)
        if name not in senders and name != "receiver":
            mistakes.add(
                "unused-host",
                ("host", name),
                f"no flow is sent by the host `{name}`",
                expected=f"one of {', '.join(sorted(senders))}, receiver",
                hint=words.did_you_mean(name, [*sorted(senders), "receiver"]) or f'add host = "{name}" to a [[flow]]',
            )
        defined = {*senders, "receiver"}
        for key, verb, busy in (
            ("sndbuf_max", "sends", rules_direction.senders_of_data(raw)),
            ("rcvbuf_max", "receives", rules_direction.receivers_of_data(raw)),
        ):
            if key in host and name not in busy and name in defined:
                direction = "up" if (name == "receiver") == (verb == "sends") else "down"
                others = " or ".join(f"[host.{other}]" for other in sorted(busy))
                mistakes.add(
                    "no-effect",
                    ("host", name, key),
                    f"`host.{name}.{key}` has no effect: the host {verb} no data (none of its flows goes {direction})",
                    hint=f"set it for {others}" if others else None,
                )
        for key, minimum in MIN_BUFFER_BYTES.items():
            size = values.quantity(host, key, quantities.size)
            if size is not None and size < minimum:
                mistakes.add(
                    "out-of-range",
                    ("host", name, key),
                    f"`host.{name}.{key}` is {host[key]}",
                    expected=f'at least "{minimum}B": the minimum of the kernel',
                )
