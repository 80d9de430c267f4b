"""The report without a browser: its content, its elements, and how it is written."""

import json
import os
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import MS, SyntheticRun, an_id, experiment, flow, large_and_medium, link
from thalweg import analysis, report
from thalweg.errors import Exit, ThalwegError
from thalweg.report.content import Content
from thalweg.report.drawing.colours import colours
from thalweg.report.drawing.layout import layout
from thalweg.report.text.findings import findings
from thalweg.report.text.numbers import scale_for
from thalweg.report.text.words import flow_sentences, path_sentences, traffic_sentences
from thalweg.results import open_run

MAX_BYTES = 5_000_000
"""Maximum size of a page."""


class Text(HTMLParser):
    """The visible text of a page, and the elements that contain it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def report_html(*runs: SyntheticRun) -> str:
    output = runs[0].directory.parent / "report.html"
    report.write([run.write() for run in runs], output)
    return output.read_text()


def small(directory: Path, repetitions: int = 3, **plan: Any) -> SyntheticRun:
    """Return a run with two points and a few repetitions of one flow."""
    experiments = [
        experiment(number, repetition, sweep={"flow.large.cc": cc}, flows=[flow("large", cc)])
        for number, cc in enumerate(("cubic", "bbr"))
        for repetition in range(repetitions)
    ]
    run = SyntheticRun(directory / "run", experiments, **plan)
    for entry in experiments:
        number, repetition = entry["experiment"], entry["repetition"]
        cc = entry["flows"][0]["cc"]
        run.transfer(number, repetition, cc=cc, end_us=1_000_000 * (1 + number) + 1000 * repetition)
        for t_us in range(0, 1_000_001, 100_000):
            run.sample(number, repetition, t_us, acked_bytes=t_us)
            run.queue(number, repetition, t_us, sent_bytes=t_us * 4, backlog_bytes=t_us // 100)
    return run


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_sweep_of_320_points_makes_a_page_under_5_mb_with_time_series_of_each(tmp_path: Path) -> None:
    run = SyntheticRun(
        tmp_path / "run",
        [
            experiment(number, sweep={"path.rtt": f"{number}ms"}, flows=[flow("large"), flow("medium", "bbr")])
            for number in range(320)
        ],
    )
    for number in range(320):
        for name, cc in (("large", "cubic"), ("medium", "bbr")):
            for connection in range(4):
                run.transfer(number, 0, name, cc=cc, connection=connection, end_us=1_000_000 + 7919 * connection)
            for t_us in range(0, 1_000_001, 20_000):
                noisy = 40_000 + 7919 * t_us % 10_007
                run.sample(number, 0, t_us, name, acked_bytes=t_us, srtt_us=noisy, pacing_rate_bps=1000 * noisy)
    html = report_html(run)
    assert len(html.encode()) < MAX_BYTES
    series = embedded(html)["series"]
    assert len(series["entries"]) + series["left_out"] == 320
    assert len(series["entries"]) > 100
    assert "more points of the sweep are not in this table" not in Text(html).words


def test_500_flows_make_a_page_under_5_mb_that_says_what_it_leaves_out(tmp_path: Path) -> None:
    names = [f"flow-{number}" for number in range(500)]
    run = SyntheticRun(tmp_path / "run", [experiment(flows=[flow(name) for name in names])])
    for name in names:
        run.transfer(0, 0, name)
        for t_us in range(0, 100_001, 10_000):
            run.sample(0, 0, t_us, name, acked_bytes=t_us)
    html = report_html(run)
    assert len(html.encode()) < MAX_BYTES
    words = Text(html).words
    assert "This page shows 40 of 500 flows, evenly spaced" in words
    assert "flow-0" in words
    assert "flow-499" in words


def embedded(html: str) -> dict[str, Any]:
    """Return the data for the page's scripts."""
    match = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert match
    data: dict[str, Any] = json.loads(match[1])
    return data


def test_the_page_contains_no_external_reference(tmp_path: Path) -> None:
    html = Text(report_html(small(tmp_path)))
    for tag, attributes in html.tags:
        for name in ("src", "href", "data", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), f"<{tag} {name}={attributes[name]}>"
    policy = next(
        a["content"] for t, a in html.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_the_page_contains_script_library_and_data_once(tmp_path: Path) -> None:
    html = report_html(small(tmp_path))
    assert html.count("globalThis.vegaEmbed=") + html.count("globalThis.vegaEmbed =") == 1
    assert html.count('type="application/json"') == 1


def test_only_the_page_is_written_and_it_replaces_an_old_one(tmp_path: Path) -> None:
    run, output = small(tmp_path).write(), tmp_path / "new folder" / "report.html"
    for _ in range(2):
        report.write([run], output)
        assert [path.name for path in output.parent.iterdir()] == ["report.html"]
        assert output.read_text().startswith("<!doctype html>")


def test_a_write_error_keeps_the_old_page_and_suggests_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small(tmp_path).write()
    output = tmp_path / "report.html"
    output.write_text("the old one")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ThalwegError, match="No space left on device") as caught:
        report.write([run], output)
    assert caught.value.exit_code == Exit.CANNOT_WRITE
    assert "--out" in (caught.value.hint or "")
    assert output.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_report_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    report.write([small(tmp_path / "run").write()], pipe)
    reader.join(timeout=60)
    assert pipe.is_fifo()
    assert read[0].startswith("<!doctype html>")


def test_a_report_through_a_symbolic_link_keeps_the_link(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere" / "report.html", tmp_path / "latest.html"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    report.write([small(tmp_path / "run").write()], link)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_directory_that_is_not_a_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="not a run directory"):
        report.write([tmp_path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_report_without_a_run_is_refused() -> None:
    with pytest.raises(ThalwegError, match="at least one"):
        report.write([], Path("report.html"))


def test_text_from_files_is_escaped(tmp_path: Path) -> None:
    evil = '</script><b id="evil">&amp;'
    run = small(
        tmp_path, name=evil, about=evil, source=evil, scenario_toml=f"# {evil} <!-- <script>", engine=f"sim{evil}"
    )
    for entry in run.plan["experiments"]:
        entry["sweep"] = {f"flow.{evil}.cc": entry["sweep"]["flow.large.cc"] + evil}
        entry["flows"][0] |= {"name": evil, "cc": evil}
    run.meta |= {"command": ["thalweg", "run", evil], "host": {"os": evil, "cpu": evil}, "created": evil}
    for key in list(run._rows):
        for row in run._rows[key]:
            row |= {name: evil for name in ("flow", "cc") if name in row}
    run._rows["flows", an_id(0, 1)][0]["untrustworthy"] = evil
    html = report_html(run)
    page = Text(html)
    assert "evil" not in [attributes.get("id") for _, attributes in page.tags]
    assert "b" not in {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 4  # the data, the library, and two of thalweg's scripts
    assert page.words.count(evil) > 10
    embedded = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert embedded
    assert json.loads(embedded[1])["flows"] == [evil]


# --- content ---------------------------------------------------------------------------------------------------


def test_the_table_has_the_numbers_of_the_analysis(tmp_path: Path) -> None:
    run = small(tmp_path)
    html = Text(report_html(run))
    summary = analysis.summary(open_run(run.directory))
    cells = [attributes for tag, attributes in html.tags if tag == "td" and "data-mean" in attributes]
    rows = summary.filter(measure="goodput")
    assert [float(cell["data-mean"] or 0) for cell in cells if cell["data-measure"] == "goodput"] == rows[
        "mean"
    ].to_list()
    assert [float(cell["data-low"] or 0) for cell in cells if cell["data-measure"] == "goodput"] == rows[
        "low"
    ].to_list()
    # 8 Mbit in 1.000, 1.001 and 1.002 s: mean 7.992 Mbit/s, s = 0.008 Mbit/s, half-width 4.303 * s / sqrt(3) = 0.0198
    assert "7.992 ± 0.020" in html.words


def test_a_page_shows_no_raw_entity(tmp_path: Path) -> None:
    page = report_html(small(tmp_path))
    assert "95\N{NO-BREAK SPACE}% confidence interval over repetitions" in page
    assert not re.search(r"&amp;#?\w+;", page)


def test_the_scenario_is_reported_in_words_with_what_the_sweep_varies() -> None:
    plan = {
        "experiments": [
            experiment(number, forward=link(buffer_bytes=size, loss={"kind": "bernoulli", "ratio": 0.01}), flows=flows)
            for number, size in enumerate((112_500, 225_000))
            for flows in [
                [
                    flow(),
                    flow("medium", "bbr", 1_000_000, start_ns=500 * MS, count=3, extra_rtt_ns=20 * MS,
                         repeat={"kind": "gap", "gap_ns": 100 * MS, "until": "large", "count": None}),
                ]
            ]
        ]
    }  # fmt: skip
    text = " ".join(path_sentences(plan, [])).replace("\u202f", " ")
    assert "carries 40 Mbit/s and the round-trip time of the empty path is 45 ms" in text
    assert "holds 112.5 kB (0.5 BDP) or 225 kB (1 BDP)" in text
    assert "On the forward path, 1 % of the packets are lost at random." in text
    assert "The reverse path has no rate limit." in text
    flows_text = {name: text.replace("\u202f", " ") for name, text in flow_sentences(plan)}
    assert flows_text["large"] == "cubic; 30 MB per connection; starts at 0 s."
    assert flows_text["medium"] == (
        "bbr; 3 parallel copies; 1 MB per connection; starts at 500 ms; the next connection opens 100 ms after the one"
        " before has finished, until large has finished; 20 ms more round-trip time."
    )
    assert "up to 45 ms" in " ".join(traffic_sentences(plan)).replace("\u202f", " ")


def test_background_bursts_of_loss_hosts_and_steps_are_reported_too() -> None:
    host = {"sndbuf_max_bytes": 2**40, "rcvbuf_max_bytes": 4_000_000, "delay_jitter_ns": 20_000}
    burst = {"kind": "gilbert_elliott", "p": 0.01, "r": 0.24, "loss_bad": 0.5, "loss_good": 0.0}
    steps = {"kind": "steps", "steps": [{"at_ns": 0, "rate_bps": 10**7}, {"at_ns": 5 * 10**9, "rate_bps": 10**6}]}
    requests = {"kind": "requests", "size_bytes": 100_000, "think_ns": 50 * MS, "count": 200}
    plan = {
        "experiments": [
            experiment(
                duration_ns=60 * 10**9,
                forward=link(loss=burst, capacity=steps, jitter_ns=5 * MS,
                             reorder=0.02, reorder_delay_ns=6 * MS, duplicate=0.01),
                reverse=link(5_000_000),
                hosts={"sender": host},
                flows=[flow("web", load=requests), flow("bulk", size_bytes=None, stop_ns=30 * 10**9, host="other")],
                background=[{"rate_bps": 3 * 10**8, "start_ns": 5 * 10**9, "stop_ns": 15 * 10**9}],
            )
        ]
    }  # fmt: skip
    text = " ".join(path_sentences(plan, []) + traffic_sentences(plan)).replace("\u202f", " ")
    assert "carries 10 Mbit/s, from 5 s on 1 Mbit/s" in text
    assert "packets are lost in bursts (Gilbert-Elliott, 2 % in the long run)" in text
    assert (
        "packets wait a random time of up to 5 ms, in order; 2 % of the packets are held back by 6 ms;"
        " 1 % of the packets arrive twice." in text
    )
    assert "The reverse path carries 5 Mbit/s." in text
    assert "The host sender has receive buffers of up to 4 MB and a random delay of up to 20 µs per packet." in text
    assert "Background UDP traffic: 300 Mbit/s from 5 s to 15 s." in text
    assert "or after 60 s" in text
    words = " ".join(text for _, text in flow_sentences(plan)).replace("\u202f", " ")
    assert "100 kB repeatedly on one connection, 200 times with pauses of 50 ms" in words
    assert "unlimited data; starts at 0 s; stops at 30 s; sent by the host other" in words


def test_findings_name_the_best_and_worst_point_and_their_significance(tmp_path: Path) -> None:
    content = Content([small(tmp_path).write()])
    goodput = next(
        finding for finding in findings(content.sweep, content.measurements) if finding.subject == "Goodput of large"
    )
    assert goodput.worst is not None
    assert (goodput.best.where, goodput.worst.where) == ("large cubic", "large bbr")
    assert goodput.remark == "the intervals do not overlap"
    retransmits = next(
        finding
        for finding in findings(content.sweep, content.measurements)
        if finding.subject == "Retransmits of large"
    )
    assert retransmits.remark == "the intervals overlap: may be due to chance"


def test_findings_of_runs_with_the_same_points_are_where_these_differ_most(tmp_path: Path) -> None:
    one, other = small(tmp_path / "a"), small(tmp_path / "b")
    for repetition in range(3):
        other._rows["flows", an_id(1, repetition)][0]["end_us"] += 500_000
    one.directory, other.directory = tmp_path / "before", tmp_path / "after"
    content = Content([one.write(), other.write()])
    goodput = next(it for it in findings(content.sweep, content.measurements) if it.subject == "Goodput of large")
    assert goodput.worst is not None
    assert (goodput.best.where, goodput.worst.where) == ("before: large bbr", "after: large bbr")
    assert "Where the runs differ most." in Text(report_html(one, other)).words
    assert "Best and worst point of the sweep." in Text(report_html(one)).words


def test_one_repetition_is_reported_to_have_no_interval(tmp_path: Path) -> None:
    html = Text(report_html(small(tmp_path, repetitions=1)))
    assert "There is one repetition: the numbers have no confidence interval." in html.words
    assert "±" not in html.words.split("Numbers")[1].split("Charts")[0]


def test_failed_missing_and_untrustworthy_experiments_are_listed(tmp_path: Path) -> None:
    run = small(tmp_path)
    for gone in (an_id(0, 2), an_id(1, 2)):
        del run._rows["flows", gone]
    run.meta["command"] = ["thalweg", "run", "my file.toml"]
    run._rows["flows", an_id(1, 0)][0]["untrustworthy"] = "the host was busy"
    run.events = [{"event": "failed", "id": an_id(0, 2), "code": "no-room", "message": "the disk is full"}]
    words = Text(report_html(run)).words
    assert "1 of 6 experiments failed." in words
    assert "large cubic, repetition 2: the disk is full [no-room]" in words
    assert "1 of 6 experiments is missing." in words
    assert "large bbr, repetition 0: the host was busy" in words
    assert "thalweg run 'my file.toml'" in words


def test_every_completion_time_without_the_unfinished_transfers_is_marked(tmp_path: Path) -> None:
    load = {"kind": "app", "app": {"kind": "rpc", "mean_gap_ns": 10**8, "sizes_bytes": [1000]}}
    run = SyntheticRun(tmp_path / "run", [experiment(0, flows=[flow("rpc", load=load)])])
    for number in range(200):
        run.transfer(0, 0, "rpc", transfer=number, completed=number % 2 == 0, start_us=number * 1000)
    assert report_html(run).count("some transfers were not completed") == 2, "the mean, and the 99th percentile"


def test_copies_and_truncated_transfers_cause_cautions(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(0, 0), experiment(0, 1)])
    for repetition in range(2):
        run.transfer(0, repetition)
        run.transfer(0, repetition, connection=1, completed=False, size_bytes=9_000_000)
    words = Text(report_html(run)).words
    assert "The repetitions are copies of one another" in words
    assert "start_jitter" in words
    assert "Some transfers were cut off by the end of the experiment, or of their flow." in words


def test_a_complete_trustworthy_run_has_no_cautions(tmp_path: Path) -> None:
    assert "Cautions" not in Text(report_html(small(tmp_path))).words


def test_the_command_of_the_run_is_shown_as_typed(tmp_path: Path) -> None:
    run = small(tmp_path)
    run.meta["command"] = ["thalweg", "run", "a b.toml", "--engine", "sim"]
    words = Text(report_html(run)).words
    assert "This command made the run: thalweg run 'a b.toml' --engine sim" in words


def test_engine_self_measurements_have_a_section_with_units(tmp_path: Path) -> None:
    run = small(tmp_path, engine="kernel")
    own = [(100.0, 0, 3.25), (140.0, 0, 4.0), (9000.0, 7, 3.5)]
    run.events = [
        {
            "event": "finished",
            "id": an_id(0, repetition),
            "measured": {"relay_lateness_p99_us": p99, "relay_dropped_packets": drops, "tea_drunk_percent": tea},
        }
        for repetition, (p99, drops, tea) in enumerate(own)
    ]
    words = Text(report_html(run)).words.replace("\u202f", " ")
    assert "How well the engine kept up" in words
    assert "Lateness of packets at the relay, 99th percentile 140 µs 9,000 µs 3" in words
    assert "Packets that the kernel dropped around the relay 0 7 3" in words
    assert "tea_drunk_percent 3.5 4 3" in words


def test_configured_and_measured_cpu_shares_are_shown_together(tmp_path: Path) -> None:
    slices = {"slice_ns": 10_000_000, "period_ns": 14_285_714, "per_packet_ns": 1_000, "per_ack_ns": 1_000}
    run = small(tmp_path, engine="vm")
    run.events = []
    for entry in run.plan["experiments"]:
        sender = entry["hosts"]["sender"]
        kinds = ({**sender, "cpu": slices}, {**sender, "co_tenants": 3})
        entry["hosts"] = {**entry["hosts"], "sender": kinds[entry["experiment"]]}
        number, late = entry["experiment"], 0.01 * entry["repetition"]
        own = (
            {"cpu_share_asked": 0.7, "cpu_share_received": 0.6 + late, "cpu_slice_median_us": 10_900.0},
            {"cpu_share_received": 0.3 + late, "co_tenants_cpu_share": 0.65},
        )[number]
        run.events.append({"event": "finished", "id": an_id(number, entry["repetition"]), "measured": own})
    words = Text(report_html(run)).words.replace("\u202f", " ")
    assert "CPU time of the senders" in words
    assert "sender 70 %: 10 ms out of every 14.3 ms 61 % 62 % 10.9 ms \u2013 3" in words
    assert "sender 3 co-tenants 31 % 32 % \u2013 65 % 3" in words
    assert "a CPU for 10 ms out of every 14.29 ms, or whenever it needs one; 0 or 3 co-tenants on its CPU" in words
    assert "kept up" not in words, "it measured nothing else"


def test_an_engine_without_self_measurements_has_no_such_section(tmp_path: Path) -> None:
    assert "kept up" not in Text(report_html(small(tmp_path))).words


def test_an_entirely_untrustworthy_run_has_a_report(tmp_path: Path) -> None:
    run = small(tmp_path, repetitions=1)
    run.meta["command"] = ["thalweg", "run", "x.toml"]
    for number in range(2):
        run._rows["flows", an_id(number, 0)][0]["untrustworthy"] = "the relay was late: p99 4.1 ms"
    words = Text(report_html(run)).words
    assert "2 of 2 experiments are untrustworthy and left out of the numbers." in words
    assert "large cubic, repetition 0: the relay was late: p99 4.1 ms" in words
    assert "thalweg run x.toml --retry-untrustworthy" in words


def test_two_engines_are_compared_and_the_scenario_is_shown_once(tmp_path: Path) -> None:
    sim = small(tmp_path / "a", engine="sim")
    kernel = small(tmp_path / "b", engine="kernel")
    html = Text(report_html(sim, kernel))
    assert [
        attributes["data-run"] for tag, attributes in html.tags if tag == "tr" and "data-run" in attributes
    ] == list("0101"), "the same point of both engines stands together"
    assert html.words.count("The bottleneck carries") == 1
    assert "Engine sim" in html.words
    assert "Engine kernel" in html.words


def test_runs_with_different_points_are_shown_in_sequence(tmp_path: Path) -> None:
    sim, kernel = small(tmp_path / "a", engine="sim"), small(tmp_path / "b", engine="kernel")
    for entry in kernel.plan["experiments"]:
        entry["sweep"] = {"flow.large.cc": entry["sweep"]["flow.large.cc"] + "2"}
    html = Text(report_html(sim, kernel))
    assert [
        attributes["data-run"] for tag, attributes in html.tags if tag == "tr" and "data-run" in attributes
    ] == list("0011")


def test_a_real_time_run_is_not_called_reproducible(tmp_path: Path) -> None:
    run = small(tmp_path)
    assert "its results are the same. It needs jq" in Text(report_html(run)).words
    run.events = [{"event": "finished", "id": an_id(0, 0), "measured": {"relay_lateness_p99_us": 9}}]
    words = Text(report_html(run)).words
    assert "its results vary slightly on a real machine. It needs jq" in words


def test_runs_of_one_engine_are_labelled_with_their_directories(tmp_path: Path) -> None:
    one, other = small(tmp_path / "a"), small(tmp_path / "b")
    one.directory, other.directory = tmp_path / "before", tmp_path / "after"
    sweep = Content([one.write(), other.write()]).sweep
    assert (sweep.runs_title, sweep.labels) == ("run", ["before", "after"])
    name = one.plan["name"]
    for run, digits, words in ((one, "1a", []), (other, "2b", ["--set", "path.rtt=9ms", "--set=path.loss=0.1"])):
        run.directory = tmp_path / f"{name}-sim-{digits}"
        run_file = run.write() / "run.json"
        run_file.write_text(json.dumps(json.loads(run_file.read_text()) | {"command": ["thalweg", "run", *words]}))
    changed = Content([one.directory, other.directory]).sweep.labels
    assert changed == ["unchanged", "path.rtt=9ms, path.loss=0.1"]
    (of_numbers, *_) = re.findall("<thead>.*?</thead>", report_html(one, other), re.DOTALL)
    assert '<th scope="col">run</th>' in of_numbers or ">run<" in of_numbers
    assert ">engine<" not in of_numbers


def test_a_run_without_time_series_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(sample_interval_ns=0)])
    run.transfer(0, 0)
    assert "The run has no time series" in Text(report_html(run)).words


# --- choices --------------------------------------------------------------------------------------------------------


def test_buffers_are_the_x_axis_and_mixes_are_panels(tmp_path: Path) -> None:
    content = Content([large_and_medium(tmp_path / "run", repetitions=1).write()])
    assert [axis.key for axis in content.sweep.axes] == ["flow.large.cc", "flow.medium.cc", "path.buffer"]
    chosen = layout(content.sweep.axes, runs=1)
    assert (chosen.x, chosen.panels, chosen.chosen) == (2, [0, 1], [])


def test_axes_with_too_many_panels_become_a_selector() -> None:
    axes = [
        analysis.Axis("path.rate", [f"{n}Mbps" for n in range(1, 11)], is_ordered=True),
        analysis.Axis("path.rtt", [f"{n}ms" for n in range(1, 9)], is_ordered=True),
        analysis.Axis("flow.a.cc", ["bbr", "cubic"], is_ordered=False),
    ]
    chosen = layout(axes, runs=1)
    assert (chosen.x, chosen.panels, chosen.chosen) == (0, [2], [1])


def test_congestion_controls_have_fixed_colours() -> None:
    assert colours(["bbr", "cubic", "reno"])["bbr"] == colours(["bbr"])["bbr"]
    everything = colours(["bbr", "cubic", "reno", "bbr3", "vegas"])
    assert len({hue.light for hue in everything.values()}) == 5


@pytest.mark.parametrize("page", ["light", "dark"])
def test_colours_contrast_three_to_one_with_the_page(page: str) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    paper = luminance({"light": "#ffffff", "dark": "#11161c"}[page])
    for cc, hue in colours(["bbr", "cubic", "reno", "a", "b", "c", "d", "e"]).items():
        ink = luminance(getattr(hue, page))
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast >= 3, f"{cc} on a {page} page: {contrast:.2f}"


def test_digits_follow_the_uncertainty() -> None:
    assert scale_for("bit/s", [34.1e6], [0.31e6]).decimals == 2
    assert scale_for("ratio", [0.97], [1e-17]).decimals == 1
