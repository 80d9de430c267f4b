"""Flows of external programs: checks before a run, and their plan."""

from pathlib import Path

import pytest
from thalweg import scenario
from thalweg.errors import ThalwegErrors
from thalweg.plan import flows, models
from thalweg.scenario import models as scenario_models

HEAD = """
name = "programs"
duration = "5s"
path = { rate = "10Mbps", rtt = "20ms" }
[[flow]]
name = "web"
"""


def mistakes(tmp_path: Path, flow: str, head: str = HEAD) -> list[tuple[str, str, str]]:
    """Return code, place and hint of all mistakes in a scenario with this flow."""
    file = tmp_path / "programs.toml"
    file.write_text(head + flow)
    try:
        scenario.load(file)
    except ThalwegErrors as errors:
        return [(error.code, str(error.place), error.hint or "") for error in errors.errors]
    return []


GOOD = 'program = { server = "python3 -m http.server {port}", client = "sh -c \'exit 0\'" }\n'


def test_two_programs_make_a_flow_without_a_congestion_control(tmp_path: Path) -> None:
    assert mistakes(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("flow", "code", "place"),
    [
        ('size = "1MB"\n', "missing-key", "flow.web.cc"),
        ('program = { server = "no-such-tool", client = "true" }\n', "no-program", "flow.web.program.server"),
        ('program = { server = "./serve", client = "true" }\n', "no-program", "flow.web.program.server"),
        ('program = { server = "sh {prot}", client = "true" }\n', "unknown-placeholder", "flow.web.program.server"),
        ('program = { server = "sh {cc}", client = "true" }\n', "missing-key", "flow.web.program.server"),
        ('program = { server = "sh \'x", client = "true" }\n', "bad-command", "flow.web.program.server"),
        ('program = { server = "sh {size}", client = "true" }\n', "missing-key", "flow.web.program"),
        (f'size = "1MB"\n{GOOD}', "conflict", "flow.web.size"),
        (f"paced = true\n{GOOD}", "conflict", "flow.web.paced"),
        (GOOD.replace("{ server", "{ ready = {}, server"), "missing-key", "flow.web.program.ready"),
        (f'repeat = {{ arrivals = "poisson", rate = "2/s" }}\n{GOOD}', "conflict", "flow.web.repeat.arrivals"),
        (
            f'{GOOD.replace("{ server", "{ port = 80, server")}[[flow]]\nname = "b"\n'
            f"{GOOD.replace('{ server', '{ port = 80, server')}",
            "conflict",
            "flow.b.program.port",
        ),
    ],
)
def test_check_reports_what_programs_cannot_do(tmp_path: Path, flow: str, code: str, place: str) -> None:
    assert (code, place) in [(mistake, where) for mistake, where, _ in mistakes(tmp_path, flow)]


def test_a_missing_program_is_reported_with_its_package(tmp_path: Path) -> None:
    flow = 'program = { server = "no-such-tool {port}", client = "true" }\n'
    assert [hint for _, _, hint in mistakes(tmp_path, flow)] == [
        "install it (Debian, Ubuntu: apt install no-such-tool)"
    ]


def test_programs_that_may_hang_need_a_duration(tmp_path: Path) -> None:
    head = HEAD.replace('duration = "5s"\n', "")
    assert ("missing-key", "flow.web.program") in [mistake[:2] for mistake in mistakes(tmp_path, GOOD, head)]


def test_a_plan_has_arguments_and_a_port_per_copy(tmp_path: Path) -> None:
    def flow(name: str, count: int) -> scenario_models.Flow:
        program = {"server": "./serve {port} 'a b'", "client": "get {server}", "ready": {"after": "1s"}}
        return scenario_models.Flow.model_validate({"name": name, "program": program, "count": count})

    first, second = flows.resolve_flows([flow("a", 2), flow("b", 1)], tmp_path)
    assert first.program is not None
    assert second.program is not None
    assert (first.program.port, second.program.port, first.cc) == (4433, 4435, "program")
    assert first.program.server == [str(tmp_path / "serve"), "{port}", "a b"]
    assert first.program.ready == models.ReadyAfter(after_ns=10**9)
