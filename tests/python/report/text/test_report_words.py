"""Sentences about swept keys: differences between points are described grammatically."""

import re
from pathlib import Path
from typing import Any

import pytest
from thalweg import engine, plan, scenario
from thalweg.report.text.words import flow_sentences, path_sentences, traffic_sentences

HEAD = """\
name = "x"
duration = "20s"
[path]
rate = "10Mbps"
rtt = "40ms"
"""
FLOW = """\
[[flow]]
name = "a"
cc = "cubic"
"""
TEMPLATES = sorted((Path(__file__).parents[4] / "python" / "thalweg" / "report" / "static").glob("*.html.j2"))
ENGINES = engine.capabilities().engines


def sentences(folder: Path, text: str) -> str:
    """Return all sentences about a scenario, with no-break spaces replaced."""
    file = folder / "x.toml"
    file.write_text(text)
    document: dict[str, Any] = plan.make(scenario.load(file), ENGINES["sim"], ENGINES).model_dump()
    lines = [
        *path_sentences(document, []),
        *(sentence for _, sentence in flow_sentences(document)),
        *traffic_sentences(document),
    ]
    return " ".join(lines).replace("\u202f", " ")


CASES = {
    "a few losses": ('"path.loss" = [0, 0.01]', "On the forward path, 0 or 1 % of the packets are lost at random."),
    "many losses": (
        '"path.loss" = [0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]',
        "On the forward path, between 0 and 30 % of the packets are lost at random (8 values).",
    ),
    "loss on the reverse path": (
        '"path.reverse.loss" = [0, 0.5]',
        "On the reverse path, 0 or 50 % of the packets are lost",
    ),
    "jitter": ('"path.jitter" = ["0s", "2ms"]', "packets wait a random time of up to 2 ms, in order, or not at all."),
    "reorder": ('"path.reorder" = [0, 0.01]', "0 or 1 % of the packets are held back by 5 ms."),
    "duplicate": ('"path.duplicate" = [0, 0.1]', "0 or 10 % of the packets arrive twice."),
    "aggregation": (
        '"path.preset" = ["lte", "fibre"]',
        "On the forward path, packets of 1 ms leave together at 1 of 2",
    ),
    "ACK thinning": ('"path.reverse.ack_thinning" = [1, 4]', "On the reverse path, one in 4 ACKs passes, or all."),
    "policer": (
        '"path.policer.rate" = ["5Mbps", "8Mbps"]\n"path.policer.burst" = ["25kB"]',
        "a policer drops what exceeds 5 or 8 Mbit/s after a burst of 25 kB.",
    ),
    "rate": ('"path.rate" = ["5Mbps", "10Mbps"]', "The bottleneck carries 5 or 10 Mbit/s and"),
    "rtt": ('"path.rtt" = ["5ms", "1s"]', "is 5 ms or 1 s."),
    "algorithms": ('"flow.a.cc" = ["cubic", "bbr"]', "cubic or bbr; unlimited data; starts at 0 s."),
    "paced": ('"flow.a.paced" = [false, true]', "cubic; paced or not; unlimited data"),
    "count": ('"flow.a.count" = [1, 2, 5]', "cubic; 1, 2 or 5 parallel copies;"),
    "size": ('"flow.a.size" = ["10kB", "1MB"]', "; 10 kB or 1 MB per connection;"),
    "size or not": ('"flow.a.size" = ["unlimited", "1MB"]', "; unlimited data or 1 MB per connection;"),
    "start": ('"flow.a.start" = ["0s", "5s"]', "starts at 0 or 5 s."),
    "stop": ('"flow.a.stop" = ["5s", "10s"]', "stops at 5 or 10 s."),
    "extra rtt": ('"flow.a.extra_rtt" = ["0s", "10ms"]', "0 or 10 ms more round-trip time."),
    "requests": (
        '"flow.a.requests.size" = ["10kB", "20kB"]\n"flow.a.requests.think" = ["0s", "50ms"]',
        "10 or 20 kB repeatedly on one connection, until the flow stops with pauses of 50 ms, or without pauses;",
    ),
    "start jitter": (
        '"start_jitter" = ["0s", "40ms"]',
        "start is shifted by a random time of up to 40 ms, or not at all.",
    ),
    "duration": ('"duration" = ["5s", "20s"]', "An experiment ends once every flow has finished, or after 5 or 20 s."),
    "send buffer": ('"host.sender.sndbuf_max" = ["20kB", "1MB"]', "The host sender has send buffers of up to 20 kB or"),
    "delay of a host": (
        '"host.sender.delay_jitter" = ["0s", "20us"]',
        "The host sender has a random delay of up to 20 µs per packet, or none.",
    ),
    "share of a CPU": ('"host.sender.cpu_share" = [0.25, 0.5]', "has a CPU for 10 ms out of every 40 or 20 ms."),
    "udp": ('"background.0.rate" = ["1Mbps", "2Mbps"]', "Background UDP traffic: 1 or 2 Mbit/s from 0 s on."),
    "sampling": ('"sample_interval" = ["10ms", "20ms"]', "An experiment ends once every flow has finished"),
}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
def test_no_html_entity_is_in_an_escaped_expression(template: Path) -> None:
    expressions = re.findall(r"{[{%].*?[%}]}", template.read_text("utf-8"), re.DOTALL)
    assert not [expression for expression in expressions if re.search(r"&(#?\w+);", expression)]


@pytest.mark.parametrize(("swept", "expected"), CASES.values(), ids=CASES)
def test_a_swept_key_is_reported_in_a_sentence(tmp_path: Path, swept: str, expected: str) -> None:
    background = '[[background]]\nrate = "1Mbps"\n' if "background" in swept else ""
    text = sentences(tmp_path, f"{HEAD}{FLOW}{background}[sweep]\n{swept}\n")
    assert expected in text
    assert not re.search(r"\bnone or\b|\bto none\b|\bup to 0\b|\bNone\b", text)


def test_a_trace_is_called_by_its_name(tmp_path: Path) -> None:
    for name in ("lte.up", "wifi.up"):
        (tmp_path / name).write_text("1\n2\n" if name == "lte.up" else "1\n3\n")
    traced = HEAD.replace('rate = "10Mbps"', 'trace = "lte.up"') + FLOW
    assert "The bottleneck carries what the trace lte.up allows" in sentences(tmp_path, traced)
    swept = sentences(tmp_path, f'{traced}[sweep]\n"path.trace" = ["lte.up", "wifi.up"]\n')
    assert "carries what the trace lte.up allows or what the trace wifi.up allows" in swept
