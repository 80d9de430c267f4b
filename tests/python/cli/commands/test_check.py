"""Output of `thalweg check`: every key that differs from its default, and the rate of a trace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Thalweg = Callable[..., Any]

HEAD = 'name = "x"\nduration = "20s"\n[path]\nrate = "10Mbps"\nrtt = "45ms"\n'
FLOW = '[[flow]]\nname = "a"\ncc = "bbr"\n'

KEYS = {
    "path.loss": HEAD + "loss = 0.5\n" + FLOW,
    "path.jitter": HEAD + 'jitter = "2ms"\n' + FLOW,
    "path.reorder.delay": HEAD + 'reorder = {ratio = 0.01, delay = "5ms"}\n' + FLOW,
    "path.duplicate": HEAD + "duplicate = 0.1\n" + FLOW,
    "path.reverse.rate": HEAD + '[path.reverse]\nrate = "5Mbps"\n' + FLOW,
    "path.reverse.loss": HEAD + "[path.reverse]\nloss = 0.9\n" + FLOW,
    "host.receiver.rcvbuf_max": HEAD + '[host.receiver]\nrcvbuf_max = "1MB"\n' + FLOW,
    "host.sender.cpu_share": HEAD + "[host.sender]\ncpu_share = 0.25\n" + FLOW,
    "flow.a.paced": HEAD + FLOW + "paced = true\n",
    "flow.a.extra_rtt": HEAD + FLOW + 'extra_rtt = "10ms"\n',
    "flow.a.stop": HEAD + FLOW + 'stop = "10s"\n',
    "flow.a.host": HEAD + "[host.other]\n" + FLOW + 'host = "other"\n',
    "flow.a.requests.think": HEAD + FLOW + 'requests = {size = "100kB", think = "50ms"}\n',
    "background.0.rate": HEAD + FLOW + '[[background]]\nrate = "9Mbps"\n',
    "background.0.start": HEAD + FLOW + '[[background]]\nrate = "9Mbps"\nstart = "5s"\n',
    "seed": "seed = 7\n" + HEAD + FLOW,
    "repetitions": "repetitions = 2\n" + HEAD + FLOW,
    "start_jitter": 'start_jitter = "1rtt"\n' + HEAD + FLOW,
    "sample_interval": 'sample_interval = "50ms"\n' + HEAD + FLOW,
}


def rows(text: str) -> dict[str, str]:
    """Return the rows of a table with two columns, by the first one."""
    return {key: value for key, _, value in (line.partition("  ") for line in text.splitlines())}


@pytest.mark.parametrize("key", KEYS)
def test_a_non_default_key_is_shown(thalweg: Thalweg, tmp_path: Path, key: str) -> None:
    (tmp_path / "x.toml").write_text(KEYS[key])
    done = thalweg("check", "x.toml")
    assert key in rows(done.stdout), done.stderr


def test_an_explicit_default_is_not_shown(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(HEAD + 'loss = 0\njitter = "0ms"\nqueue = "fifo"\n' + FLOW + 'start = "0s"\n')
    assert list(rows(thalweg("check", "x.toml").stdout)) == ["key", "rate", "rtt", "buffer", "ends", "flow a"]


def test_the_row_of_a_trace_shows_its_name_mean_rate_and_period(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "fast.up").write_text("".join(f"{ms}\n" for ms in range(1, 2001)))
    (tmp_path / "back.up").write_text("".join(f"{ms}\n" for ms in range(10, 1001, 10)))
    (tmp_path / "x.toml").write_text(
        HEAD.replace('rate = "10Mbps"', 'trace = "fast.up"') + '[path.reverse]\ntrace = "back.up"\n' + FLOW
    )
    shown = rows(thalweg("check", "x.toml").stdout)
    assert shown["rate"].strip() == "trace fast.up: 12Mbps on average, repeats every 2s"
    assert shown["path.reverse.trace"].strip() == "trace back.up: 1.2Mbps on average, repeats every 1s"


def test_a_swept_trace_has_its_mean_rate_at_each_point(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "slow.up").write_text("4\n")
    (tmp_path / "fast.up").write_text("1\n2\n3\n4\n")
    (tmp_path / "x.toml").write_text(
        HEAD.replace('rate = "10Mbps"', 'trace = "fast.up"') + FLOW + '[sweep]\n"path.trace" = ["slow.up", "fast.up"]\n'
    )
    lines = thalweg("check", "x.toml").stdout.splitlines()
    assert "trace slow.up: 3Mbps on average" in lines[-2]
    assert "trace fast.up: 12Mbps on average" in lines[-1]


def test_a_swept_key_is_a_column_and_has_no_row(thalweg: Thalweg, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(HEAD + "loss = 0.1\n" + FLOW + '[sweep]\n"path.loss" = [0.2, 0.3]\n')
    text = thalweg("check", "x.toml").stdout
    assert "path.loss" not in rows(text)
    assert text.splitlines()[-2:] == ["    0  0.2", "    1  0.3"]


def test_long_values_are_wrapped_to_the_width_of_the_terminal(thalweg: Thalweg, tmp_path: Path) -> None:
    text = HEAD.replace('rate = "10Mbps"\nrtt = "45ms"', 'preset = "lte"')
    (tmp_path / "x.toml").write_text(text + FLOW + '[sweep]\n"flow.a.cc" = ["bbr", "cubic"]\n')
    narrow, wide = (thalweg("check", "x.toml", COLUMNS=columns).stdout for columns in ("80", "120"))
    assert 70 < max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines())) <= 120
    assert narrow.split() == wide.split(), "nothing is cut off"


def test_keys_that_differ_between_presets_are_columns_and_their_sources_are_listed(
    thalweg: Thalweg, tmp_path: Path
) -> None:
    path = '[path]\npreset = "geo"\n'
    sweep = '[sweep]\n"path.preset" = ["geo", "lte", "starlink"]\n'
    (tmp_path / "x.toml").write_text('name = "x"\nduration = "20s"\n' + path + FLOW + sweep)
    above, points, sources = thalweg("check", "x.toml").stdout.split("\n\n")
    assert "path." not in above
    header, geo, lte, starlink = points.splitlines()
    at = header.index("path.reverse.rate")
    assert [row[at:].split()[0] for row in (geo, lte, starlink)] == ["10Mbps", "5.6Mbps", "17Mbps"]
    loss = header.index("path.loss")
    assert [row[loss : loss + 9].strip() for row in (geo, lte, starlink)] == ["", "", "0.004"]
    assert [line.split()[0] for line in sources.splitlines() if line[0] != " "] == ["preset", "geo", "lte", "starlink"]


def test_steps_with_a_swept_value_are_shown_at_each_point(thalweg: Thalweg, tmp_path: Path) -> None:
    steps = 'steps = [{at = "0s", loss = 0}, {at = "2s", rtt = "80ms"}]\n'
    (tmp_path / "x.toml").write_text(HEAD + steps + FLOW + '[sweep]\n"path.steps.1.rtt" = ["20ms", "200ms"]\n')
    points = thalweg("check", "x.toml").stdout.split("\n\n")[-1]
    assert ["0s loss 0, 2s rtt 20ms" in points, "0s loss 0, 2s rtt 200ms" in points, "80ms" in points] == [
        True,
        True,
        False,
    ]
