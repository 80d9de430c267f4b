"""Small searches for tests, which take some seconds in the simulator."""

from pathlib import Path

from thalweg import scenario
from thalweg.search.table import Search

SMALL = """\
name = "small"
about = "BBR and CUBIC share a buffer."
duration = "500ms"
repetitions = 4
start_jitter = "1rtt"
sample_interval = "0s"
[path]
rate = "5Mbps"
rtt = "10ms"
buffer = "1bdp"
[[flow]]
name = "ours"
cc = "bbr"
[[flow]]
name = "theirs"
cc = "cubic"
size = "20kB"
start = "100ms"
[sweep]
"path.rtt" = ["10ms", "20ms", "30ms"]
[search]
objectives = [{ measure = "goodput", of = "ours", goal = "maximise", over = "worst" }]
constraints = ["harm(theirs) <= 0.9"]
held_out = { "path.rtt" = ["30ms"] }
budget = 12
[search.parameters]
"path.rate" = { low = "2Mbps", high = "8Mbps", scale = "log" }
"flow.theirs.cc" = { choices = ["cubic", "reno"] }
"""

TWO_OBJECTIVES = SMALL.replace(
    'over = "worst" }]', 'over = "worst" }, { measure = "goodput", of = "theirs", goal = "maximise" }]'
).replace('constraints = ["harm(theirs) <= 0.9"]\n', "")

SCENARIO = """\
name = "x"
{HEAD}
duration = "1s"
[path]
rate = "10Mbps"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
name = "ours"
cc = "bbr"
[[flow]]
name = "theirs"
cc = "cubic"
[sweep]
"path.rtt" = ["10ms", "20ms", "30ms"]
[search]
parameters = {PARAMETERS}
objectives = {OBJECTIVES}
{MORE}
"""
OBJECTIVES = '[{ measure = "goodput", of = "ours", goal = "maximise" }]'
PARAMETERS = '{ "path.buffer" = ["0.5bdp", "4bdp"] }'


def searched(
    tmp_path: Path, *, parameters: str = PARAMETERS, objectives: str = OBJECTIVES, more: str = "", head: str = ""
) -> Search:
    file = tmp_path / "x.toml"
    text = SCENARIO.replace("{PARAMETERS}", parameters).replace("{OBJECTIVES}", objectives).replace("{MORE}", more)
    file.write_text(text.replace("{HEAD}", head))
    return Search.of(scenario.load(file))
