"""Resolves the flows of a scenario."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from thalweg.files import read_regular
from thalweg.plan import apps
from thalweg.plan import models as plan
from thalweg.scenario import models
from thalweg.scenario.rules import rules_cc, rules_program
from thalweg.scenario.text import quantities
from thalweg.scenario.text.quantities import PerSecond

NANOS = 10**9


CC_OF_PROGRAMS = "program"
"""Label of flows whose programs choose the algorithm themselves."""


def resolve_flows(flows: Sequence[models.Flow], folder: Path) -> list[plan.Flow]:
    """Resolve the flows; relative paths of congestion controls and programs are relative to `folder`."""
    wanted_ports = [(flow.program.port, flow.count) for flow in flows if flow.program is not None]
    ports = iter(rules_program.ports(wanted_ports))
    return [_flow(flow, folder, 0 if flow.program is None else next(ports)) for flow in flows]


def _flow(flow: models.Flow, folder: Path, port: int) -> plan.Flow:
    load = _load(flow)
    return plan.Flow(
        name=flow.name,
        cc=_cc(flow.cc),
        cc_file=_cc_file(flow.cc, folder) if isinstance(flow.cc, models.CcTable) else None,
        cc_params=dict(sorted(flow.cc_params.items())),
        paced=flow.paced,
        ecn=bool(flow.ecn),
        start_ns=quantities.time(flow.start),
        stop_ns=None if flow.stop is None else quantities.time(flow.stop),
        load=load,
        repeat=_repeat(flow.repeat, load),
        count=flow.count,
        extra_rtt_ns=quantities.time(flow.extra_rtt),
        host=flow.host,
        up=flow.direction == "up",
        program=None if flow.program is None else _program(flow.program, folder, port),
    )


def _cc(cc: models.Cc | None) -> str:
    if isinstance(cc, models.CcTable):
        return rules_cc.name_of(cc.model_dump(exclude_none=True))
    return cc or CC_OF_PROGRAMS


def _program(program: models.Program, folder: Path, port: int) -> plan.Program:
    return plan.Program(
        server=_command(program.server, folder),
        client=_command(program.client, folder),
        ready=_ready(program.ready),
        port=port,
        client_sends=program.sends == "client",
        qlog=program.qlog,
        folder=str(folder.absolute()),
    )


def _command(text: str, folder: Path) -> list[str]:
    """Split a command; a relative path of its program is relative to `folder`."""
    program, *arguments = rules_program.split(text)
    return [str((folder / program).absolute()) if "/" in program else program, *arguments]


def _ready(ready: models.ProgramReady) -> plan.Ready:
    if not isinstance(ready, models.ProgramReadyTable):
        return plan.ReadyListening()
    if ready.output is not None:
        return plan.ReadyOutput(text=ready.output)
    return plan.ReadyAfter(after_ns=quantities.time(ready.after or "0s"))


LARGEST_FILE = 64 * 10**6
"""Maximum size in bytes of a kernel module or an eBPF object."""


def _cc_file(table: models.CcTable, folder: Path) -> plan.CcFile:
    """Return the file with a hash of its content, so that different content is a different experiment."""
    kind: plan.CcFileKind = "bpf" if table.bpf is not None else "module"
    file = (folder / (table.bpf or table.module or "")).absolute()
    return plan.CcFile(kind=kind, path=str(file), sha256=hashlib.sha256(read_regular(file, LARGEST_FILE)).hexdigest())


def _load(flow: models.Flow) -> plan.Load:
    if flow.app is not None:
        return plan.LoadApp(app=apps.resolve(flow.app))
    if flow.requests is not None:
        return plan.LoadRequests(
            size_bytes=quantities.size(flow.requests.size),
            think_ns=quantities.time(flow.requests.think),
            count=flow.requests.count,
        )
    if flow.repeat is not None and flow.repeat.sizes is not None:
        return plan.LoadSizes(sizes_bytes=[quantities.size(size) for size in flow.repeat.sizes])
    size = quantities.size_or_unlimited(flow.size)
    return plan.LoadUnlimited() if size is None else plan.LoadSizes(sizes_bytes=[size])


def _repeat(repeat: models.Repeat | None, load: plan.Load) -> plan.Repeat:
    if repeat is None:
        return plan.RepeatOnce()
    if repeat.gap is not None:
        return plan.RepeatGap(gap_ns=quantities.time(repeat.gap), until=repeat.until, count=repeat.count)
    rate = quantities.arrival_rate(repeat.rate or "")
    gap = 1 / rate.arrivals if isinstance(rate, PerSecond) else _mean_bytes(load) * 8 / rate
    # A gap of zero would make everything arrive at the same time; a nanosecond is the resolution of the clock.
    return plan.RepeatPoisson(mean_gap_ns=max(1, round(gap * NANOS)), until=repeat.until, count=repeat.count)


def _mean_bytes(load: plan.Load) -> Fraction:
    if isinstance(load, plan.LoadRequests):
        return Fraction(load.size_bytes * (load.count or 1))
    if isinstance(load, plan.LoadSizes):
        return Fraction(sum(load.sizes_bytes), len(load.sizes_bytes))
    raise AssertionError("checked: connections without end do not repeat")
