"""Every mistake in a scenario has an error with a remedy; the snapshots contain the error texts."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from thalweg import scenario
from thalweg.errors import ThalwegError, ThalwegErrors

GOOD = """\
name = "good"
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "large"
cc = "cubic"
size = "30MB"
[[flow]]
name = "medium"
cc = "bbr"
size = "1MB"
start = "0.5s"
repeat = {gap = "0.1s", until = "large"}
"""

HEAD = 'name = "x"\n[path]\nrate = "40Mbps"\nrtt = "45ms"\n'
FLOW = '[[flow]]\nname = "a"\ncc = "cubic"\nsize = "1MB"\n'

CASES = {
    "unknown key in a table": GOOD.replace("[path]\n", '[path]\nbufer = "1bdp"\n'),
    "unknown key at the top": "repetition = 3\n" + GOOD,
    "unknown key in a flow": GOOD + 'sise = "3MB"\n',
    "unknown key in an inline table": GOOD.replace("until", "untill"),
    "unknown key of a host": GOOD + "[host.sender]\ncpu_shares = 0.5\n",
    "policer without a bucket": GOOD.replace("[path]\n", '[path]\npolicer = {rate = "10Mbps"}\n'),
    "policer that passes nothing": GOOD.replace("[path]\n", '[path]\npolicer = {rate = "10Mbps", burst = "1kB"}\n'),
    "step that changes nothing": HEAD.replace('rate = "40Mbps"', 'steps = [{at = "0s", rate = "4Mbps"}, {at = "1s"}]')
    + FLOW,
    "steps without a rate": HEAD.replace('rate = "40Mbps"', 'steps = [{at = "0s", rtt = "9ms"}]') + FLOW,
    "rate only in a later step": HEAD.replace(
        'rate = "40Mbps"', 'steps = [{at = "0s", rtt = "9ms"}, {at = "1s", rate = "4Mbps"}]'
    )
    + FLOW,
    "rtt in a step of the reverse path": GOOD + '[path.reverse]\nrate = "9Mbps"\nsteps = [{at = "0s", rtt = "9ms"}]\n',
    "aggregation without a time": GOOD.replace("[path]\n", '[path]\naggregation = {interval = "0s"}\n'),
    "unknown preset": GOOD.replace("[path]\n", '[path]\npreset = "wimax"\n'),
    "red that begins above its end": GOOD.replace(
        "[path]\n", '[path]\nqueue = {name = "red", min = "9kB", max = "3kB"}\n'
    ),
    "fraction for pie": GOOD.replace("[path]\n", '[path]\nqueue = {name = "pie", alpha = 0.125}\n'),
    "codel that never waits": GOOD.replace("[path]\n", '[path]\nqueue = {name = "codel", target = "0s"}\n'),
    "generation of a kernel as a number": GOOD + "[host.sender]\nkernel = 6.1\n",
    "share of a CPU of nothing": GOOD + "[host.sender]\ncpu_share = 0\n",
    "share of more than a CPU": GOOD + "[host.sender]\ncpu_share = 50\n",
    "share of a CPU as a text": GOOD + '[host.sender]\ncpu_share = "50%"\n',
    "slice that is too long": GOOD + '[host.sender]\ncpu_share = 0.5\ncpu_slice = "1.5s"\n',
    "slice that is too short": GOOD + '[host.sender]\ncpu_share = 0.5\ncpu_slice = "1us"\n',
    "slice and costs without a share": GOOD + '[host.sender]\ncpu_slice = "10ms"\ncpu_per_ack = "3us"\n',
    "away for minutes": GOOD + '[host.sender]\ncpu_share = 0.001\ncpu_slice = "100ms"\n',
    "share and co-tenants": GOOD + "[host.sender]\ncpu_share = 0.5\nco_tenants = 2\n",
    "more CPUs than are modelled": GOOD + "[host.sender]\ncpus = 3\n",
    "two CPUs and co-tenants": GOOD + "[host.sender]\ncpus = 2\nco_tenants = 1\n",
    "CPUs of the receiver": GOOD + "[host.receiver]\ncpus = 2\n",
    "jitter that a period does not hold": GOOD + "[host.sender]\ncpu_share = 0.8\ncpu_slice_jitter = 0.5\n",
    "jitter without a share": GOOD + "[host.sender]\ncpu_slice_jitter = 0.5\n",
    "credit without an amount": GOOD + '[host.sender]\ncpu_share = 0.1\ncpu_model = "credit"\n',
    "credit without its model": GOOD + '[host.sender]\ncpu_share = 0.1\ncpu_credit = "60s"\ncpu_load = 1.0\n',
    "credit without a share": GOOD + '[host.sender]\ncpu_model = "credit"\ncpu_credit = "60s"\n',
    "unknown model of a CPU": GOOD + '[host.sender]\ncpu_share = 0.1\ncpu_model = "credits"\n',
    "credit for two CPUs": GOOD + '[host.sender]\ncpu_share = 0.1\ncpu_model = "credit"\ncpu_credit = "0s"\ncpus = 2\n',
    "more credit than is kept": GOOD
    + '[host.sender]\ncpu_share = 0.1\ncpu_model = "credit"\ncpu_credit = "2s"\ncpu_credit_max = "1s"\n',
    "too many co-tenants": GOOD + "[host.sender]\nco_tenants = 65\n",
    "queue discipline of the receiver": GOOD + '[host.receiver]\nqdisc = "fq"\n',
    "queue discipline with parameters": GOOD + '[host.sender]\nqdisc = "fq limit 100"\n',
    "share of the receiver": GOOD + "[host.receiver]\ncpu_share = 0.5\n",
    "packet that takes longer than a slice may": GOOD + '[host.sender]\ncpu_share = 0.5\ncpu_per_packet = "2s"\n',
    "sweep to a share of nothing": GOOD + '[sweep]\n"host.sender.cpu_share" = [0.5, 0.0]\n',
    "key in the wrong table": 'rtt = "45ms"\n' + GOOD,
    "key of the top behind a table": GOOD + "repetitions = 3\n",
    "another word for a key": GOOD.replace("[path]\n", '[path]\nlatency = "1ms"\n'),
    "misspelled required key": GOOD.replace('rtt = "45ms"', 'rt = "45ms"'),
    "missing name": GOOD.replace('name = "good"\n', ""),
    "missing path": 'name = "x"\n' + FLOW,
    "missing rtt": GOOD.replace('rtt = "45ms"\n', ""),
    "missing cc": GOOD.replace('cc = "cubic"\n', ""),
    "congestion control from no file": GOOD.replace('"cubic"', '{name = "mine"}'),
    "congestion control from two files": GOOD.replace('"cubic"', '{bpf = "a.bpf.o", module = "a.ko"}'),
    "congestion control from a file that is not there": GOOD.replace('"cubic"', '{module = "build/mine.ko"}'),
    "congestion control with an invalid name": GOOD.replace('"cubic"', '{name = "a name", module = "x.ko"}'),
    "name that cannot name a directory": GOOD.replace('"good"', '"a/b"'),
    "number without quotes and unit": GOOD.replace('"45ms"', "45"),
    "number without a unit": GOOD.replace('"40Mbps"', '"40"'),
    "unit in the wrong case": GOOD.replace('"40Mbps"', '"40mbps"'),
    "unit of another kind": GOOD.replace('"40Mbps"', '"40MB"'),
    "long unit": GOOD.replace('"45ms"', '"45 msec"'),
    "negative time": GOOD.replace('"45ms"', '"-45ms"'),
    "too fine a time": GOOD.replace('"45ms"', '"0.5ns"'),
    "too large a size": GOOD.replace('"30MB"', '"99999999999999GB"'),
    "text where a number belongs": GOOD.replace("[path]\n", '[path]\nduplicate = "1%"\n'),
    "number where a text belongs": GOOD.replace('cc = "bbr"', "cc = 2"),
    "list where a value belongs": GOOD.replace('cc = "bbr"', 'cc = ["bbr", "cubic"]'),
    "fraction where a whole number belongs": "repetitions = 2.5\n" + GOOD,
    "out of range": "repetitions = 0\n" + GOOD.replace("[path]\n", "[path]\nloss = 1.5\n"),
    "not a number": GOOD.replace("[path]\n", "[path]\nloss = nan\n"),
    "table of a union has a mistake": GOOD.replace("[path]\n", '[path]\nloss = {model = "gilbert", p = 0.1}\n'),
    "value of a union has a mistake": GOOD.replace("[path]\n", '[path]\nqueue = "fqcodel"\n'),
    "parameter of another queue": GOOD.replace("[path]\n", '[path]\nqueue = {name = "pie", flows = 3}\n'),
    "numbers without units": "duration = 20\n"
    + GOOD.replace('"40Mbps"', "10000000").replace('"45ms"', "0.045").replace("[path]", "[path]\nbuffer = 100"),
    "percent where a ratio belongs": GOOD.replace("[path]\n", '[path]\nloss = "0.1%"\n'),
    "list of tables instead of a table, with a key in the sweep": GOOD.replace("[path]", "[[path]]")
    + '[sweep]\n"path.buffer" = ["1bdp", "2bdp"]\n',
    "one flow instead of a list, with a key in the sweep": HEAD
    + FLOW.replace("[[flow]]", "[flow]")
    + '[sweep]\n"flow.a.size" = ["1MB", "2MB"]\n',
    "sweep of a key and of a table around it": GOOD + '[sweep]\n"path.loss" = [0.1, 0.2]\n"path.loss.p" = [0.1]\n',
    "sweep that completes a table": GOOD + '[sweep]\n"path.loss.model" = ["gilbert-elliott"]\n"path.loss.p" = [0.1]\n',
    "hexadecimal number of thousands of digits": GOOD.replace("[path]\n", "[path]\nloss = 0x" + "f" * 5000 + "\n"),
    "yes instead of a share": GOOD + "[host.sender]\ncpu_share = true\n",
    "one flow instead of a list": HEAD + FLOW.replace("[[flow]]", "[flow]"),
    "list instead of one path": GOOD.replace("[path]", "[[path]]"),
    "rate and trace": GOOD.replace("[path]\n", '[path]\nsteps = [{at = "0s", rate = "1Mbps"}]\n'),
    "no rate": GOOD.replace('rate = "40Mbps"\n', ""),
    "rate of zero": GOOD.replace('"40Mbps"', '"0Mbps"'),
    "rtt of zero": GOOD.replace('"45ms"', '"0ms"'),
    "steps out of order": GOOD.replace(
        'rate = "40Mbps"',
        'steps = [{at = "1s", rate = "1Mbps"}, {at = "3s", rate = "2Mbps"}, {at = "2s", rate = "1Mbps"}]',
    ),
    "no steps": GOOD.replace('rate = "40Mbps"', "steps = []"),
    "link that stops for ever": GOOD.replace(
        'rate = "40Mbps"', 'steps = [{at = "0s", rate = "1Mbps"}, {at = "3s", rate = "0Mbps"}]'
    ),
    "link that stops before its last step": GOOD.replace(
        'rate = "40Mbps"',
        'steps = [{at = "0s", rate = "1Mbps"}, {at = "3s", rate = "0Mbps"}, {at = "4s", rtt = "10ms"}]',
    ),
    "link that loses everything after a step": GOOD.replace("[path]\n", '[path]\nsteps = [{at = "0s", loss = 1}]\n'),
    "everything is lost": GOOD.replace("[path]\n", "[path]\nloss = 1\n"),
    "everything is lost in bursts": GOOD.replace(
        "[path]\n", '[path]\nloss = {model = "gilbert-elliott", p = 0.5, r = 0}\n'
    ),
    "buffers below what any kernel has": GOOD
    + '[host.sender]\nsndbuf_max = "1B"\n[host.receiver]\nrcvbuf_max = "0B"\n',
    "UDP leaves nothing": GOOD + '[[background]]\nrate = "30Mbps"\n[[background]]\nrate = "10Mbps"\n',
    "trace that does not exist": GOOD.replace('rate = "40Mbps"', 'trace = "lte.upp"'),
    "trace with a bad line": GOOD.replace('rate = "40Mbps"', 'trace = "bad.trace"'),
    "trace without a rate": GOOD.replace('rate = "40Mbps"', 'trace = "delays.csv"'),
    "trace in another unit": GOOD.replace('rate = "40Mbps"', 'trace = "mbps.csv"'),
    "trace with a rate of a few bits": GOOD.replace('rate = "40Mbps"', 'trace = "slow.csv"'),
    "trace that loses everything": GOOD.replace("[path]\n", '[path]\ntrace = "lost.csv"\n'),
    "trace with times only": GOOD.replace("[path]\n", '[path]\ntrace = "times.csv"\n'),
    "long line of another format": GOOD + "{" * 5000,
    "trace that goes back": GOOD.replace('rate = "40Mbps"', 'trace = "back.trace"'),
    "trace without lines": GOOD.replace('rate = "40Mbps"', 'trace = "empty.trace"'),
    "trace beyond all clocks": GOOD.replace('rate = "40Mbps"', 'trace = "far.trace"'),
    "buffer without room for a packet": GOOD.replace("[path]\n", '[path]\nbuffer = "0.001bdp"\n'),
    "buffer of no packets": GOOD.replace("[path]\n", '[path]\nbuffer = "0packets"\n'),
    "reverse buffer without a rate": GOOD.replace("[[flow]]", '[path.reverse]\nbuffer = "1kB"\n[[flow]]', 1),
    "no flow": HEAD,
    "two flows of one name": GOOD.replace('"medium"', '"large"'),
    "until names no flow": GOOD.replace('until = "large"', 'until = "lrge"'),
    "until names its own flow": GOOD.replace('until = "large"', 'until = "medium"'),
    "until in a circle": GOOD + HEAD[:0] + '[[flow]]\nname = "c"\ncc = "bbr"\nsize = "1MB"\n'
    'repeat = {gap = "0s", until = "d"}\n[[flow]]\nname = "d"\ncc = "bbr"\nsize = "1MB"\n'
    'repeat = {gap = "0s", until = "c"}\n',
    "host that does not exist": GOOD + 'host = "sendr"\n',
    "host that sends nothing": GOOD + '[host.sendr]\nsndbuf_max = "1MB"\n',
    "host receiver sends": GOOD + 'host = "receiver"\n',
    "buffer on the wrong host": GOOD + '[host.sender]\nrcvbuf_max = "1MB"\n',
    "direction that there is not": GOOD + 'direction = "reverse"\n',
    "unlimited flow up without a limit": "duration = '9s'\n"
    + GOOD
    + '[[flow]]\nname = "up"\ncc = "reno"\ndirection = "up"\n',
    "UDP leaves nothing beside steps without rates": GOOD.replace(
        "[path]\n", '[path]\nsteps = [{at = "0s", rtt = "45ms"}, {at = "1s", loss = 0.1}]\n'
    )
    + '[[background]]\nrate = "40Mbps"\n',
    "UDP up leaves nothing": GOOD
    + '[path.reverse]\nrate = "1Mbps"\n[[background]]\nrate = "1Mbps"\ndirection = "up"\n',
    "receive buffer where nothing goes down": GOOD.replace("cc = ", 'direction = "up"\ncc = ')
    + '[path.reverse]\nrate = "1Mbps"\n[host.receiver]\nrcvbuf_max = "1MB"\n',
    "requests and size": HEAD + FLOW + 'requests = {size = "1kB", count = 3}\n',
    "requests of nothing": HEAD + FLOW.replace('size = "1MB"\n', 'requests = {size = "0kB", count = 3}\n'),
    "gap and arrivals": HEAD + FLOW + 'repeat = {gap = "1s", arrivals = "poisson", rate = "3/s"}\n',
    "arrivals without a rate": HEAD + FLOW + 'repeat = {arrivals = "poisson", count = 3}\n',
    "sizes without arrivals": HEAD + FLOW.replace('size = "1MB"\n', 'repeat = {sizes = ["1MB"], count = 3}\n'),
    "sizes and size": HEAD + FLOW + 'repeat = {arrivals = "poisson", rate = "3/s", sizes = ["1MB"], count = 3}\n',
    "repeat without a rhythm": HEAD + FLOW + "repeat = {count = 3}\n",
    "repeat of an unlimited flow": 'duration = "9s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"\n', 'repeat = {gap = "1s"}\n'),
    "no duration and an unlimited flow": HEAD + FLOW.replace("1MB", "unlimited"),
    "no duration and endless repetition": HEAD + FLOW + 'repeat = {gap = "1s"}\n',
    "samples more often than can be told": 'sample_interval = "999ns"\n' + GOOD,
    "more samples than memory holds": 'duration = "1000min"\nsample_interval = "1ms"\n'
    + HEAD
    + FLOW.replace('"1MB"', '"unlimited"\ncount = 5'),
    "more counted arrivals than memory holds": HEAD
    + FLOW.replace("[[flow]]", "[[flow]]\ncount = 1000")
    + 'repeat = {arrivals = "poisson", rate = "100/s", count = 20000}\n',
    "more arrivals than memory holds": 'duration = "60s"\n'
    + HEAD
    + FLOW
    + 'repeat = {arrivals = "poisson", rate = "1000000/s"}\n',
    "more load than memory holds": 'duration = "60s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"', 'repeat = {arrivals = "poisson", rate = "80Gbps", sizes = ["10B", "20B"]}'),
    "size of zero": HEAD + FLOW.replace("1MB", "0MB"),
    "stop before start": HEAD + FLOW + 'start = "2s"\nstop = "1s"\n',
    "start after the end": 'duration = "1s"\n' + HEAD + FLOW + 'start = "2s"\n',
    "background of zero": GOOD + '[[background]]\nrate = "0Mbps"\n',
    "sweep of an unknown key": GOOD + '[sweep]\n"path.bufer" = ["1bdp"]\n',
    "sweep of an unknown flow": GOOD + '[sweep]\n"flow.mediun.cc" = ["bbr"]\n',
    "sweep of an unknown key of a flow": GOOD + '[sweep]\n"flow.medium.ccc" = ["bbr"]\n',
    "sweep of a whole table": GOOD + '[sweep]\n"flow.medium.repeat" = ["x"]\n',
    "sweep of the name": GOOD + '[sweep]\n"name" = ["x"]\n',
    "sweep of a parameter of a queue that is only a name": GOOD.replace("[path]", '[path]\nqueue = "codel"')
    + '[sweep]\n"path.queue.limit" = [10, 20]\n',
    "sweep without values": GOOD + '[sweep]\n"path.buffer" = []\n',
    "sweep of a key without quotes": GOOD + '[sweep]\nflow.medium.cc = ["bbr"]\n',
    "sweep with hundreds of mistakes": GOOD
    + '[sweep]\n"path.buffer" = ['
    + ", ".join(f'"{number}B"' for number in range(1, 401))
    + "]\n",
    "sweep of one value": GOOD + '[sweep]\n"path.buffer" = "1bdp"\n',
    "sweep of mixed kinds": GOOD + '[sweep]\n"path.loss" = [0.1, "0.2"]\n',
    "sweep of a value twice": GOOD + '[sweep]\n"path.loss" = [0.1, 0.2, 0.1]\n',
    "sweep to a bad value": GOOD + '[sweep]\n"path.buffer" = ["1bdp", "2"]\n"flow.large.count" = [1, 0]\n',
    "sweep to a value that is too small": GOOD + '[sweep]\n"path.buffer" = ["1bdp", "1kB"]\n',
    "sweep into a conflict": GOOD + '[sweep]\n"path.trace" = ["good.trace"]\n',
    "sweep of one end against another": 'duration = "9s"\n' + GOOD + 'stop = "5s"\n[sweep]\n'
    '"flow.medium.start" = ["1s", "6s"]\n"flow.medium.stop" = ["2s", "7s"]\n',
    "application beside a size": HEAD + FLOW + 'app = "video"\n',
    "unknown application": 'duration = "9s"\n' + HEAD + FLOW.replace('size = "1MB"', 'app = "vidio"'),
    "parameter of another application": 'duration = "9s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"', 'app = { name = "call", pages = 2 }'),
    "video with a buffer of one segment": 'duration = "9s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"', 'app = { name = "video", buffer = "5s" }'),
    "bitrates that fall": 'duration = "9s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"', 'app = { name = "video", bitrates = ["2Mbps", "1Mbps"] }'),
    "too many messages": 'duration = "100s"\n'
    + HEAD
    + FLOW.replace('size = "1MB"', 'app = { name = "probe", interval = "1us" }'),
    "call without end": HEAD + FLOW.replace('size = "1MB"', 'app = "call"'),
    "too many experiments": "repetitions = 100000\n"
    + GOOD
    + '[sweep]\n"path.loss" = ['
    + ", ".join(f"0.{index:02}" for index in range(1, 13))
    + "]\n",
    "text without quotes": GOOD.replace('"40Mbps"', "40Mbps"),
    "bracket that is not closed": GOOD.replace("[path]", "[path"),
    "text that is not closed": GOOD.replace('"good"', '"good'),
    "table that is there twice": GOOD + "[path]\n",
    "key that is there twice": GOOD + 'cc = "cubic"\n',
    "file that ends too early": GOOD + "x = [",
    "brackets in brackets": "x = " + 2000 * "[" + 2000 * "]",
    "number of thousands of digits": "seed = " + 5000 * "9",
    "empty file": "",
    "several mistakes": GOOD.replace('"40Mbps"', '"40"').replace('"30MB"', '"30"').replace('"large"}', '"larg"}'),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lte.up").write_text("1\n2\n")
    (tmp_path / "good.trace").write_text("1\n2\n")
    (tmp_path / "bad.trace").write_text("1\n2\n3.5\n")
    (tmp_path / "back.trace").write_text("1\n5\n3\n")
    (tmp_path / "delays.csv").write_text("t_s,delay_s\n0,0.02\n2,0.03\n")
    (tmp_path / "mbps.csv").write_text("t_s,rate_mbps\n0,40\n")
    (tmp_path / "slow.csv").write_text("t_s,rate_bps\n0,40\n")
    (tmp_path / "lost.csv").write_text("t_s,loss\n0,1\n")
    (tmp_path / "times.csv").write_text("t_s\n0\n2\n")
    (tmp_path / "far.trace").write_text("1\n" + 5000 * "9" + "\n")
    (tmp_path / "empty.trace").write_text("\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistakes(text: str) -> ThalwegError:
    Path("x.toml").write_text(text)
    with pytest.raises(ThalwegError) as caught:
        scenario.load("x.toml")
    return caught.value


def test_the_base_scenario_of_the_cases_is_valid() -> None:
    Path("good.toml").write_text(GOOD)
    assert scenario.load("good.toml").raw["name"] == "good"


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_explained(case: str, snapshot: SnapshotAssertion) -> None:
    assert mistakes(CASES[case]).text() == snapshot


@pytest.mark.parametrize("case", CASES)
def test_an_error_has_a_machine_readable_position(case: str) -> None:
    for error in mistakes(CASES[case]).errors:
        assert error.place or error.source
        assert error.as_dict()["code"] == error.code


def test_every_mistake_is_reported_once() -> None:
    error = mistakes(CASES["several mistakes"])
    assert isinstance(error, ThalwegErrors)
    assert [mistake.place for mistake in error.errors] == ["path.rate", "flow.large.size", "flow.medium.repeat.until"]


def test_a_missing_file_is_an_error_that_lists_the_present_ones(folder: Path) -> None:
    (folder / "itc.toml").write_text(GOOD)
    with pytest.raises(ThalwegError) as caught:
        scenario.load("itx.toml")
    assert caught.value.code == "no-file"
    assert "itc.toml" in str(caught.value.hint)


def test_a_directory_is_not_a_scenario(folder: Path) -> None:
    with pytest.raises(ThalwegError, match="is a directory"):
        scenario.load(folder)


def test_a_file_in_another_encoding_names_the_line(folder: Path) -> None:
    (folder / "x.toml").write_bytes(b'name = "x"\nabout = "caf\xe9"\n')
    with pytest.raises(ThalwegError) as caught:
        scenario.load("x.toml")
    assert caught.value.code == "not-utf8"
    assert str(caught.value.source) == "x.toml:2"


def test_a_utf_16_file_is_reported_with_the_conversion_command(folder: Path) -> None:
    (folder / "x.toml").write_text(GOOD, encoding="utf-16")
    with pytest.raises(ThalwegError) as caught:
        scenario.load("x.toml")
    assert caught.value.hint == "iconv -f UTF-16 -t UTF-8 'x.toml'"


def test_a_byte_order_mark_and_crlf_are_accepted(folder: Path) -> None:
    (folder / "x.toml").write_text(GOOD.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    assert scenario.load("x.toml").raw["name"] == "good"


def test_flows_may_form_a_long_dependency_chain(folder: Path) -> None:
    links = [
        f'[[flow]]\nname = "f{n}"\ncc = "cubic"\nsize = "1kB"\nrepeat = {{gap = "1s", until = "f{n + 1}"}}\n'
        for n in range(1200)
    ]
    (folder / "x.toml").write_text(HEAD + "".join(links) + FLOW.replace('"a"', '"f1200"'))
    scenario.load("x.toml")


def test_a_long_duration_is_valid_if_every_flow_terminates(folder: Path) -> None:
    (folder / "x.toml").write_text('duration = "5000000min"\nsample_interval = "1us"\n' + GOOD)
    scenario.load("x.toml")


def test_a_key_that_the_sweep_sets_need_not_be_set_before(folder: Path) -> None:
    text = GOOD.replace('cc = "bbr"\n', "").replace('rate = "40Mbps"\n', "")
    text += '[sweep]\n"flow.medium.cc" = ["bbr", "cubic"]\n"path.rate" = ["10Mbps"]\n'
    (folder / "x.toml").write_text(text)
    scenario.load("x.toml")


def test_tables_that_do_not_exist_yet_can_be_swept(folder: Path) -> None:
    text = GOOD + '[sweep]\n"path.reverse.loss" = [0.0, 0.1]\n"host.receiver.rcvbuf_max" = ["1MB"]\n'
    (folder / "x.toml").write_text(text)
    scenario.load("x.toml")


def test_settings_override_values_and_sweeps(folder: Path) -> None:
    (folder / "x.toml").write_text(GOOD + '[sweep]\n"path.buffer" = ["1bdp", "2bdp"]\n')
    document = scenario.load("x.toml", {"path.buffer": "4bdp", "seed": 7, "flow.medium.cc": "cubic"})
    assert document.raw["sweep"] == {}
    assert document.raw["path"]["buffer"] == "4bdp"
    assert document.raw["seed"] == 7
    assert document.raw["flow"][1]["cc"] == "cubic"


def test_a_bad_setting_points_to_the_command_line(folder: Path) -> None:
    (folder / "x.toml").write_text(GOOD)
    with pytest.raises(ThalwegError) as caught:
        scenario.load("x.toml", {"path.buffer": "4"})
    assert str(caught.value.errors[0].source) == "--set"
    with pytest.raises(ThalwegError) as caught:
        scenario.load("x.toml", {"path.bufer": "4bdp"})
    assert caught.value.errors[0].hint == "did you mean `path.buffer`?"


def test_buffers_apply_to_the_endpoints_of_the_flow_direction() -> None:
    up = GOOD.replace('cc = "bbr"', 'cc = "bbr"\ndirection = "up"')
    both = "[host.sender]\nsndbuf_max = '1MB'\nrcvbuf_max = '1MB'\n[host.receiver]\nsndbuf_max = '1MB'\nqdisc = 'fq'\n"
    Path("up.toml").write_text(up + both)
    assert scenario.load("up.toml").raw["flow"][1]["direction"] == "up"


def test_an_unlimited_upstream_flow_runs_if_a_buffer_limits_it() -> None:
    flow = '[[flow]]\nname = "up"\ncc = "reno"\ndirection = "up"\n[host.receiver]\nsndbuf_max = "1MB"\n'
    Path("up.toml").write_text("duration = '9s'\n" + GOOD + flow)
    assert scenario.load("up.toml").raw["flow"][2]["direction"] == "up"


def test_a_name_belongs_to_one_algorithm_of_a_host(folder: Path) -> None:
    (folder / "tcp_bbr.ko").write_text("code")
    own = GOOD.replace('"cubic"', '{module = "tcp_bbr.ko"}')
    (folder / "x.toml").write_text(own)
    with pytest.raises(ThalwegErrors) as caught:
        scenario.load("x.toml")
    (error,) = caught.value.errors
    assert error.message == (
        "`flow.medium.cc` and `flow.large.cc` are different algorithms with the name `bbr` on the host `sender`"
    )
    for sound in (own.replace('cc = "bbr"', 'cc = "bbr"\nhost = "other"') + "[host.other]\n",
                  own.replace('cc = "bbr"', 'cc = "bbr"\ndirection = "up"'),
                  own.replace('"bbr"', '{name = "bbr", module = "tcp_bbr.ko"}')):  # fmt: skip
        (folder / "x.toml").write_text(sound)
        scenario.load("x.toml")
