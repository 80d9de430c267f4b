"""Names of run directories depend on the plan and the engine."""

from dataclasses import replace
from pathlib import Path

from synthetic_engines import SIM
from thalweg import plan, scenario

TEXT = """
name = "x"
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "a"
cc = "cubic"
size = "1MB"
"""


def test_an_edited_scenario_or_another_engine_version_has_its_own_directory(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(TEXT)
    short = plan.make(scenario.load(tmp_path / "x.toml"), SIM, {"sim": SIM})
    long = plan.make(scenario.load(tmp_path / "x.toml", {"flow.a.size": "2MB"}), SIM, {"sim": SIM})
    folder = plan.folder_of(tmp_path, "x", SIM, short)
    assert folder.parent == tmp_path
    assert folder == plan.folder_of(tmp_path, "x", SIM, short)
    assert folder != plan.folder_of(tmp_path, "x", SIM, long)
    assert folder != plan.folder_of(tmp_path, "x", replace(SIM, version="2"), short)
