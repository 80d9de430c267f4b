"""Any scenario is either planned or rejected with an explanation."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic_engines import KERNEL, SIM
from thalweg import plan
from thalweg.errors import ThalwegError
from thalweg.scenario import sweep
from thalweg.scenario.check import find
from thalweg.scenario.document import Document
from thalweg.scenario.places import resolve, schema

TEXTS = st.sampled_from(
    """1s 0s 2ms 1rtt 0rtt 40Mbps 0bps 100kB 0B 1bdp 0bdp 3packets unlimited 20/s 0/s x a b sender receiver cubic fifo
    codel poisson gilbert-elliott good.up 99999999999GB 18446744073709551615bps 18446744073709551615ns path.rtt
    flow.a.size 40 -1s""".split()  # noqa: SIM905
)
WRONG_ONE_IN = 15
"""One in this number of values has an arbitrary type."""

SCALARS = TEXTS | st.sampled_from([0, 1, 2, -1, 2**70, 0.5, 1.0, float("nan"), float("inf"), True, False])

RIGHT_TEXTS = {
    "rate": ["40Mbps", "1Gbps", "1bps"],
    "size": ["100kB", "1B", "3GB"],
    "time": ["1s", "2ms", "45ms"],
    "time-or-rtt": ["1rtt", "0s", "0.3rtt"],
    "buffer": ["1bdp", "3packets", "100kB"],
    "size-or-unlimited": ["unlimited", "1MB"],
    "arrival-rate": ["20/s", "10Mbps", "0.001/s", "400Gbps"],
}
"""Valid texts, by format of the schema."""


def values(node: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values for a node of the schema: mostly valid, sometimes of another type."""
    node = resolve(node)
    if depth > 6:
        return SCALARS
    if "anyOf" in node:
        right = st.one_of([values(branch, depth) for branch in node["anyOf"] if branch != {"type": "null"}])
    elif "oneOf" in node:
        right = st.sampled_from([choice["const"] for choice in node["oneOf"]])
    elif "properties" in node:
        required = set(node.get("required", ()))
        fields = {key: values(field, depth + 1) for key, field in node["properties"].items()}
        right = st.fixed_dictionaries(
            {key: field for key, field in fields.items() if key in required},
            optional={key: field for key, field in fields.items() if key not in required},
        )
    elif "additionalProperties" in node and isinstance(node["additionalProperties"], dict):
        right = st.dictionaries(TEXTS, values(node["additionalProperties"], depth + 1), max_size=2)
    elif "items" in node:
        right = st.lists(values(node["items"], depth + 1), max_size=3)
    elif node.get("format") in RIGHT_TEXTS:
        right = st.sampled_from(RIGHT_TEXTS[node["format"]])
    elif "number" in node["type"]:
        right = st.sampled_from([0.0, 0.25, 0.5, 1])
    elif "integer" in node["type"]:
        right = st.integers(1, 3)
    else:
        right = SCALARS
    return st.integers(1, WRONG_ONE_IN).flatmap(lambda number: SCALARS if number == WRONG_ONE_IN else right)


RIGHT: dict[str, Any] = {
    "name": "x",
    "duration": "9s",
    "path": {"rate": "40Mbps", "rtt": "45ms"},
    "flow": [{"name": "a", "cc": "cubic", "size": "1MB"}, {"name": "b", "cc": "bbr"}],
}


@st.composite
def one_change(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid scenario with one top-level value replaced, or with at most two keys of a table of it."""
    key = draw(st.sampled_from(list(schema()["properties"])))
    changed = draw(values(schema()["properties"][key]))
    if key in ("path", "flow") and isinstance(changed, dict | list):
        before = RIGHT[key]
        if isinstance(changed, dict):
            changed = before | {k: changed[k] for k in list(changed)[:2]}
        else:
            changed = [
                old | {k: new[k] for k in list(new)[:2] if k != "name"} if isinstance(new, dict) else new
                for old, new in zip(before, changed, strict=False)
            ]
    return RIGHT | {key: changed}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=one_change() | values(schema()).filter(lambda value: isinstance(value, dict)))
def test_a_scenario_is_explained_or_planned(tmp_path_factory: Any, raw: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "good.up").write_text("1\n2\n")
    document = Document(Path(folder / "x.toml"), "", raw)
    errors = find(document)
    for error in errors:
        assert error.text().startswith(f"error[{error.code}]: ")
    if errors:
        return
    with suppress(ThalwegError):  # an engine may not support a setting
        planned = plan.make(document, SIM, {"sim": SIM, "kernel": KERNEL})
        assert planned.model_dump_json()
        assert len(planned.experiments) >= len(list(sweep.points(document.axes)))
