"""Segments over IPv6 have the same size in the simulator and in a real kernel."""

from pathlib import Path

import pytest
import thalweg

SCENARIO = Path(__file__).parents[3] / "scenarios" / "shell.toml"
SIZE_BYTES = 142_800
"""A hundred full-sized segments over IPv6, too few to overflow the buffer."""


@pytest.mark.usefixtures("kernel")
def test_a_segment_over_ipv6_is_twenty_bytes_smaller_on_both_engines(tmp_path: Path) -> None:
    if not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    changes = {"path.ip": 6, "flow.cubic.size": f"{SIZE_BYTES}B", "path.buffer": "500kB"}
    flows = {}
    for engine in ("sim", "kernel"):
        result = thalweg.load_scenario(SCENARIO, changes).run(engine=engine, out=tmp_path / engine)
        flows[engine] = result.table("flows").row(0, named=True)
    for flow in flows.values():
        assert (flow["completed"], flow["acked_bytes"]) == (True, SIZE_BYTES)
        assert flow["segments"] - flow["retransmits"] == 100, flows
