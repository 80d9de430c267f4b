"""Rules of [flow.repeat]: the connections after the first one, and whether they ever end."""

from collections import Counter

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_app
from thalweg.scenario.text import quantities, words


def check(flow: Raw, repeat: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    """Check one [flow.repeat], whose address is `name`."""
    forms = "gap (with until or count), or arrivals with rate and sizes"
    at_random = [key for key in ("arrivals", "rate", "sizes") if key in repeat]
    if "gap" in repeat and at_random:
        mistakes.add(
            "conflict",
            (*key_path, at_random[0]),
            f"`{name}` has `gap` and {' and '.join(f'`{key}`' for key in at_random)}",
            expected=f"either {forms}",
            hint="remove `gap`, or " + ", ".join(f"`{key}`" for key in at_random),
        )
        return
    if "gap" not in repeat and not at_random:
        mistakes.add_missing(
            key_path,
            f"`{name}` does not set when connections open",
            expected=f"either {forms}",
            hint='add gap = "0.1s"',
            instead=(name,),
        )
        return
    examples = {"arrivals": 'arrivals = "poisson"', "rate": 'rate = "20/s"'}
    if at_random and (missing := [key for key in examples if key not in repeat]):
        mistakes.add_missing(
            key_path,
            f"{' and '.join(f'`{key}`' for key in missing)} {'are' if missing[1:] else 'is'} missing in `{name}`",
            expected=forms,
            hint=f"add {' and '.join(examples[key] for key in missing)}",
            instead=tuple(f"{name}.{key}" for key in missing),
        )
    if repeat.get("sizes") == []:
        mistakes.add(
            "empty-list", (*key_path, "sizes"), f"`{name}.sizes` is an empty list", expected="at least one size"
        )
    rate = values.quantity(repeat, "rate", quantities.arrival_rate)
    if rate == 0 or (isinstance(rate, quantities.PerSecond) and rate.arrivals == 0):
        mistakes.add(
            "out-of-range",
            (*key_path, "rate"),
            f"`{name}.rate` is zero: no connection would ever open",
            expected="a rate above zero",
        )
    requests = flow.get("requests")
    is_unlimited = (
        "program" not in flow
        and flow.get("size", "unlimited") == "unlimited"
        and "sizes" not in repeat
        and requests is None
    )
    if is_unlimited or (isinstance(requests, dict) and "count" not in requests):
        owner = name.removesuffix(".repeat")
        required = "a size" if is_unlimited else "requests.count"
        mistakes.add_missing(
            key_path,
            f"`{name}` repeats connections that never finish",
            expected=f"{required} in `{owner}`",
            hint='add size = "1MB" to the flow' if is_unlimited else "add count = 100 to requests",
            instead=(owner,),
        )


def check_until(flows: list[tuple[int, Raw]], mistakes: Mistakes) -> None:
    """Check that every `until` names another flow, and that flows do not wait for each other."""
    counts = Counter(name for _, flow in flows if isinstance(name := flow.get("name"), str))
    predecessors = {
        name: until
        for _, flow in flows
        if isinstance(name := flow.get("name"), str)
        and isinstance(until := values.table(flow, "repeat").get("until"), str)
    }
    circular = _on_circles(predecessors)
    reported: set[str] = set()
    for index, flow in flows:
        until = values.table(flow, "repeat").get("until")
        if not isinstance(until, str):
            continue
        name, key_path = str(flow.get("name", index)), ("flow", index, "repeat", "until")
        if until not in counts:
            others = [other_name for other_name in counts if other_name != name]
            mistakes.add(
                "unknown-flow",
                key_path,
                f"`flow.{name}.repeat.until` names an unknown flow: `{until}`",
                expected=words.one_of(others) if others else "the name of another flow",
                hint=words.did_you_mean(until, others),
            )
        elif name in circular and counts[name] == 1 and name not in reported:
            circle = [name]
            while (following := predecessors[circle[-1]]) != name:
                circle.append(following)
            reported.update(circle)
            mistakes.add(
                "circular-until",
                key_path,
                f"flows wait for each other: {' waits for '.join(f'`{waiting}`' for waiting in [*circle, name])}",
                expected="until of a flow that ends",
            )


def _on_circles(predecessors: dict[str, str]) -> set[str]:
    """Return the flows that wait for themselves, directly or indirectly."""
    circular: set[str] = set()
    followed: set[str] = set()
    for start in predecessors:
        path: dict[str, int] = {}
        name = start
        while name in predecessors and name not in followed and name not in path:
            path[name] = len(path)
            name = predecessors[name]
        if name in path:
            circular.update(list(path)[path[name] :])
        followed.update(path)
    return circular


class Endings:
    """Finds the flows of a scenario that never end; malformed and circular flows count as finite."""

    def __init__(self, flows: list[tuple[int, Raw]]) -> None:
        self._flows = {str(flow.get("name")): flow for _, flow in reversed(flows)}
        self._is_endless: dict[str, bool] = {}

    def is_endless(self, flow: Raw) -> bool:
        """Return whether a flow never ends, which may depend on the flow that its `until` names."""
        path: dict[str, None] = {}
        answer = _goes_on(flow)
        while isinstance(answer, str):
            if answer in self._is_endless:
                answer = self._is_endless[answer]
            elif answer in path or answer not in self._flows:
                answer = False
            else:
                path[answer] = None
                answer = _goes_on(self._flows[answer])
        self._is_endless.update(dict.fromkeys(path, answer))
        return answer


def _goes_on(flow: Raw) -> bool | str:
    """Return whether a flow never ends, or the name of the flow with which it ends."""
    if "stop" in flow:
        return False
    if "app" in flow:
        return rules_app.is_endless(flow)
    repeat, requests = flow.get("repeat"), flow.get("requests")
    if isinstance(repeat, dict) and ("gap" in repeat) == ("arrivals" in repeat):
        return False
    sizes = isinstance(repeat, dict) and "sizes" in repeat
    if isinstance(requests, dict) and "count" not in requests:
        return not isinstance(repeat, dict)
    if requests is None and not sizes and flow.get("size", "unlimited") == "unlimited":
        return not isinstance(repeat, dict)
    if not isinstance(repeat, dict) or "count" in repeat:
        return False
    return str(repeat["until"]) if "until" in repeat else True
