"""Detects points whose repetitions will be copies of one another, because nothing in the plan is random."""

from collections.abc import Mapping

from thalweg.engine import Engine
from thalweg.plan.models import (
    AppRpc,
    AppWeb,
    CapacitySteps,
    CapacityUnlimited,
    Experiment,
    Flow,
    Host,
    Link,
    Load,
    LoadApp,
    LoadSizes,
    LossBernoulli,
    Plan,
    Profile,
    QueueFifo,
    RepeatOnce,
    RepeatPoisson,
)
from thalweg.plan.resolve import NO_LIMIT_BYTES

RANDOM_CC = ("bbr", "cdg", "nv")
"""Prefixes of algorithms that draw random numbers: BBR for the times of its probes, CDG for its backoff, and NV for the
resets of its smallest RTT.
"""


def warning(plan: Plan, engine: Engine) -> str | None:
    """Return a sentence on the points whose repetitions will be copies; None without copies, or in real time."""
    if engine.is_real_time:
        return None
    points = {experiment.experiment: experiment for experiment in plan.experiments}
    repeated = {experiment.experiment for experiment in plan.experiments if experiment.repetition > 0}
    count = sum(not is_random(points[number], plan.profiles) for number in repeated)
    if not count:
        return None
    where = "" if count == len(points) else f" at {count} of {len(points)} points"
    has_jitter = any(experiment.start_jitter_ns for experiment in plan.experiments)
    remedy = "start_jitter alone only shifts them; use random loss or path.jitter"
    if not has_jitter:
        remedy = 'start_jitter = "1rtt" makes them differ'
    return (
        f"the repetitions{where} will be copies of one another: nothing in them is random, so they get no interval"
        f" ({remedy})"
    )


def is_random(experiment: Experiment, profiles: Mapping[str, Profile]) -> bool:
    """Return whether a deterministic engine may draw random numbers that change the experiment."""
    return (
        _is_jitter_felt(experiment)
        or _is_link_random(experiment.forward, profiles)
        or _is_link_random(experiment.reverse, profiles)
        or any(map(_is_host_random, experiment.hosts.values()))
        or any(map(_is_flow_random, experiment.flows))
        or bool(experiment.background)  # each packet is sent at a random time of its interval
    )


def _is_jitter_felt(experiment: Experiment) -> bool:
    """Return whether a random start has an effect; a single sized transfer on a constant path is only
    shifted in time.
    """
    flow, *others = experiment.flows
    is_constant = all(
        link.profile is None
        and (
            isinstance(link.capacity, CapacityUnlimited)
            or (isinstance(link.capacity, CapacitySteps) and len(link.capacity.steps) == 1)
        )
        for link in (experiment.forward, experiment.reverse)
    )
    is_alone = not others and flow.count == 1 and isinstance(flow.repeat, RepeatOnce) and not experiment.background
    is_sized = isinstance(flow.load, LoadSizes) and flow.stop_ns is None
    return experiment.start_jitter_ns > 0 and not (is_alone and is_sized and is_constant)


def _is_link_random(link: Link, profiles: Mapping[str, Profile]) -> bool:
    loss = link.loss
    loses = 0 < loss.ratio < 1 if isinstance(loss, LossBernoulli) else bool(loss.p or loss.loss_good)
    points = profiles[link.profile].points if link.profile is not None else []
    loses = loses or any(0 < (point.loss or 0) < 1 for point in points)
    return loses or not isinstance(link.queue, QueueFifo) or bool(link.jitter_ns or link.reorder or link.duplicate)


def _is_host_random(host: Host) -> bool:
    """Return whether a host may be random. Slices of a CPU begin at a random time, but if credit precedes them, when it
    is used up.
    """
    cpu = host.cpu if host.cpu is not None and host.cpu.slice_ns < host.cpu.period_ns else None
    begins_with_credit = cpu is not None and cpu.credit is not None and cpu.credit.initial_ns > 0
    has_random_slices = cpu is not None and (not begins_with_credit or cpu.slice_jitter_ppm > 0)
    # At the limit of its send buffer, a sender of Linux 6.12 or later takes a random time to write.
    has_random_writes = host.sndbuf_max_bytes < NO_LIMIT_BYTES and host.kernel != "6.1"
    return has_random_slices or has_random_writes or host.delay_jitter_ns > 0 or host.qdisc is not None


def _is_flow_random(flow: Flow) -> bool:
    """Return whether a flow is random; an algorithm from a file is assumed to be."""
    return (
        flow.cc.startswith(RANDOM_CC)
        or flow.cc_file is not None
        or isinstance(flow.repeat, RepeatPoisson)
        or _is_load_random(flow.load)
    )


def _is_load_random(load: Load) -> bool:
    app = load.app if isinstance(load, LoadApp) else None
    drawn_from = load if isinstance(load, LoadSizes) else app if isinstance(app, AppWeb) else None
    has_several_sizes = drawn_from is not None and len(set(drawn_from.sizes_bytes)) > 1
    # Below the second level of a page, each object is referenced by a random one.
    return isinstance(app, AppRpc) or has_several_sizes or (isinstance(app, AppWeb) and app.depth > 2)
