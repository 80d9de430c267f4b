"""The dashboard has the format of Grafana's editor, without values of a specific installation."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "packaging" / "grafana" / "thalweg-agent.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES: list[dict[str, Any]] = DASHBOARD["templating"]["list"]

SCHEMAS = range(36, 42)
"""Accepted schema versions."""
WIDTH = 24
"""Number of columns of Grafana's grid."""
TYPES = {"row", "timeseries", "stat"}
"""Permitted panel types, which are all built into Grafana."""
OF_UNIT = {
    "s": "_seconds", "bytes": "_bytes", "Bps": "_bytes", "bps": "* 8", "ops": "rate(", "percentunit": "/", "short": "",
}  # fmt: skip
"""Grafana's names of the units in use, and the required text in each query of a panel with the unit."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def names(panels: list[dict[str, Any]]) -> list[str]:
    return [panel["title"] for panel in panels]


def test_the_dashboard_is_complete_and_has_a_supported_schema() -> None:
    assert DASHBOARD["schemaVersion"] in SCHEMAS
    # An id would refer to a specific Grafana database.
    assert DASHBOARD.get("id") is None
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["title"]
    assert {"__inputs", "__requires"}.isdisjoint(DASHBOARD), "questions at the import: the variable asks instead"
    assert set(DASHBOARD["time"]) == {"from", "to"}


def test_panels_have_unique_numbers_and_names() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert all(isinstance(number, int) and number > 0 for number in numbers)
    assert len(set(names(DASHBOARD["panels"]))) == len(numbers)
    assert {panel["type"] for panel in DASHBOARD["panels"]} == TYPES


def test_panels_do_not_overlap() -> None:
    places = {panel["title"]: panel["gridPos"] for panel in DASHBOARD["panels"]}
    for place in places.values():
        assert place["x"] >= 0
        assert 0 < place["w"] <= WIDTH - place["x"]
        assert place["h"] > 0
    for (one, a), (other, b) in itertools.combinations(places.items(), 2):
        is_beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        is_below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert is_beside or is_below, f"{one} lies over {other}"


def test_all_panels_use_the_selected_data_source() -> None:
    first = VARIABLES[0]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    assert [variable["datasource"] for variable in VARIABLES[1:]] == [SOURCE] * (len(VARIABLES) - 1)
    for panel in PANELS:
        targets = panel["targets"]
        assert panel["datasource"] == SOURCE, panel["title"]
        assert [target["datasource"] for target in targets] == [SOURCE] * len(targets), panel["title"]
        references = [target["refId"] for target in targets]
        assert sorted(set(references)) == references, panel["title"]


def test_exactly_the_declared_variables_are_used() -> None:
    expressions = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    used = set(re.findall(r"\$(\w+)", expressions)) - {"__rate_interval"}
    assert used == {variable["name"] for variable in VARIABLES[1:]}
    for panel in PANELS:
        for target in panel["targets"]:
            assert "$instance" in target["expr"], f"{panel['title']}: of all servers, whichever is chosen"


@pytest.mark.parametrize("panel", PANELS, ids=names(PANELS))
def test_the_unit_of_a_panel_matches_its_query(panel: dict[str, Any]) -> None:
    part = OF_UNIT[panel["fieldConfig"]["defaults"]["unit"]]
    for target in panel["targets"]:
        assert part in target["expr"], target["expr"]
        assert target["legendFormat"]


def test_every_queried_metric_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "agent.md").read_text()
    expressions = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    metrics = {
        re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"\b(?:thalweg|process)_\w+", expressions)
    }
    assert len(metrics) > 15
    assert [name for name in sorted(metrics) if f"`{name}`" not in page] == []
