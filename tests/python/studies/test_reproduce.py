"""`thalweg reproduce` on the command line, with small user-defined studies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from thalweg.errors import Exit

SCENARIO = """\
name = "alone"
duration = "2s"
repetitions = 3
start_jitter = "1rtt"
[path]
rate = "10Mbps"
rtt = "20ms"
[[flow]]
name = "bulk"
cc = "cubic"
size = "unlimited"
[sweep]
"path.buffer" = ["1bdp", "4bdp"]
"flow.bulk.cc" = ["cubic", "bbr"]
"""

HEAD = """\
title = "Alone"
about = "One flow on its own."
[paper]
cite = "Author, Journal (2031)"
[parts.alone]
scenario = "alone.toml"
quick = { repetitions = 2, "path.buffer" = ["4bdp"] }
"""

QUEUE = """\
[[claims]]
id = "cubic-fills-the-queue"
text = "CUBIC keeps more in the queue than BBR."
paper = "far more"
part = "alone"
value = { measure = "queueing_delay", where = { "flow.bulk.cc" = "cubic", "path.buffer" = "4bdp" } }
against = { where = { "flow.bulk.cc" = "bbr" } }
judge = { as = "ratio", at_least = 1.5 }
"""

WRONG = """\
[[claims]]
id = "cubic-is-idle"
text = "CUBIC leaves the link idle."
part = "alone"
value = { measure = "utilisation", where = { "flow.bulk.cc" = "cubic" } }
judge = { at_most = 0.1 }
"""

FIGURE = """\
[[figures]]
id = "queue"
title = "Queueing delay over the buffer"
part = "alone"
kind = "lines"
value = { measure = "queueing_delay" }
x = "path.buffer"
series = ["flow.bulk.cc"]
curves = [{ name = "full", y = "8 * buffer_bytes / rate_bps" }]
"""

Study = Callable[..., Path]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Return a function that writes the study `mine` with some claims."""

    def write(*claims: str, head: str = HEAD, scenario: str = SCENARIO) -> Path:
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "alone.toml").write_text(scenario)
        (folder / "claims.toml").write_text(head + "".join(claims))
        return folder

    return write


def test_each_claim_is_reported_with_its_number_and_its_verdict(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE, WRONG)
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 0, done.stderr
    assert "cubic-fills-the-queue" in done.stdout
    assert "far more" in done.stdout
    assert "sim: 1 of 2 claims hold: 1 does not hold" in done.stdout


def test_an_unknown_study_is_reported_with_the_known_ones(thalweg: Callable[..., Any]) -> None:
    done = thalweg("reproduce", "itc18-mixed-workloads")
    assert done.returncode == 2
    assert "did you mean `itc18-mixed-workload`?" in done.stderr


def test_a_mistake_is_reported_with_key_line_and_suggestion(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE.replace("queueing_delay", "queuing_delay"))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "`claims.0.value.measure` names an unknown measure: `queuing_delay`" in done.stderr
    assert "mine/claims.toml:13" in done.stderr
    assert "did you mean `queueing_delay`?" in done.stderr


OWN = """\
[measures.lag]
about = "How far behind the best algorithm's goodput."
expression = "1 - goodput / most_goodput"
among = ["flow.bulk.cc"]
[parts.alone]"""

BEHIND = """\
[[claims]]
id = "bbr-is-behind"
text = "BBR is not ahead."
part = "alone"
value = { measure = "lag", flow = "bulk", where = { "flow.bulk.cc" = "bbr" } }
judge = { at_least = -0.5, at_most = 0.5 }
"""


def test_a_study_may_define_a_measure(thalweg: Callable[..., Any], study: Study) -> None:
    study(BEHIND, head=HEAD.replace("[parts.alone]", OWN))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 0, done.stderr
    assert "sim: 1 of 1 claims hold" in done.stdout


def test_a_mistake_in_a_defined_measure_is_reported(thalweg: Callable[..., Any], study: Study) -> None:
    own = OWN.replace("most_goodput", "best_goodput").replace("flow.bulk.cc", "flow.bulk.size")
    study(BEHIND, head=HEAD.replace("[parts.alone]", own))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "`lag`: there is no `best_goodput`" in done.stderr
    assert "flow.bulk.size" in done.stderr


def test_harm_of_a_defined_measure_is_refused(thalweg: Callable[..., Any], study: Study) -> None:
    against = 'against = { where = { "flow.bulk.cc" = "cubic" } }\njudge = { as = "harm", '
    study(BEHIND.replace("judge = { ", against), head=HEAD.replace("[parts.alone]", OWN))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "it is unknown whether a larger `lag` is better" in done.stderr
    assert 'hint: as = "ratio"' in done.stderr


def test_json_has_every_number_behind_a_verdict(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE)
    document = json.loads(thalweg("reproduce", "./mine", "--json").stdout)
    [engine] = document["studies"][0]["engines"]
    [claim] = engine["claims"]
    assert (claim["verdict"], claim["n"], engine["failed"]) == ("holds", 3, 0)
    assert 1.5 < claim["low"] < claim["value"] < claim["high"]


def test_sides_may_be_distinguished_by_a_derived_key(thalweg: Callable[..., Any], study: Study) -> None:
    deep = QUEUE.replace('"path.buffer" = "4bdp"', "buffer_bdp = { at_least = 3 }")
    study(deep.replace('{ where = { "flow.bulk.cc" = "bbr" } }', "{ where = { buffer_bdp = { at_most = 2 } } }"))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 0, done.stderr
    assert "sim: 1 of 1 claims hold" in done.stdout


def test_the_page_shows_the_claims_and_the_figures(thalweg: Callable[..., Any], study: Study, tmp_path: Path) -> None:
    study(QUEUE, FIGURE)
    done = thalweg("reproduce", "./mine", "--out", "here")
    assert done.stdout.splitlines()[-1] == "page  here/mine/sim.html"
    page = (tmp_path / "here/mine/sim.html").read_text()
    assert "CUBIC keeps more in the queue than BBR." in page
    assert "Queueing delay over the buffer" in page


def test_figures_are_written_and_omitted_ones_reported(thalweg: Callable[..., Any], study: Study) -> None:
    elsewhere = FIGURE.replace('"queue"', '"shallow"').replace("Queueing delay over", "Deep against").replace(
        '{ measure = "queueing_delay" }', '{ measure = "queueing_delay", where = { "path.buffer" = "1bdp" } }'
    )  # fmt: skip
    # Several figures replace one of the paper's, so its number would not identify the missing one.
    study(QUEUE, *(figure.replace("[[figures]]", '[[figures]]\npaper = "Figure 3"') for figure in (FIGURE, elsewhere)))
    done = thalweg("reproduce", "./mine", "--quick", "--figures", "drawn", "--format", "pdf")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "figure  drawn/queue.pdf"
    assert [file.name for file in Path("drawn").iterdir()] == ["queue.pdf"]
    assert Path("drawn/queue.pdf").read_bytes().startswith(b"%PDF-")
    assert "“Deep against the buffer”: without sim, because" in " ".join(done.stderr.split())
    again = json.loads(thalweg("reproduce", "./mine", "--quick", "--figures", "drawn", "--json").stdout)
    assert again["studies"][0]["figures"] == ["drawn/queue.svg"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--figures", "file"], "--figures DIR"),
        (["--figures", "drawn", "--format", "jpeg"], "svg, png or pdf"),
        (["--format", "pdf"], "thalweg reproduce NAME --figures DIR --format pdf"),
    ],
)
def test_invalid_figures_are_refused_before_anything_runs(
    thalweg: Callable[..., Any], study: Study, arguments: list[str], hint: str
) -> None:
    study(QUEUE, FIGURE)
    Path("file").write_text("in the way")
    done = thalweg("reproduce", "./mine", *arguments)
    assert done.returncode in (2, 3)
    assert hint in done.stderr
    assert not Path("runs").exists()


def test_a_claim_that_no_longer_holds_fails_the_check(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE)
    assert thalweg("reproduce", "./mine", "--record").returncode == 0
    assert thalweg("reproduce", "./mine", "--check").returncode == 0
    study(QUEUE.replace("at_least = 1.5", "at_least = 1000"))
    done = thalweg("reproduce", "./mine", "--check")
    assert done.returncode == 1
    assert "`cubic-fills-the-queue` held on sim; now: does not hold" in done.stderr
    assert thalweg("reproduce", "./mine").returncode == 0, "without --check, verdicts do not fail"


def test_a_removed_claim_fails_the_check_until_recorded(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE, WRONG)
    assert thalweg("reproduce", "./mine", "--record").returncode == 0
    study(WRONG)
    done = thalweg("reproduce", "./mine", "--check")
    assert done.returncode == 1
    assert "`cubic-fills-the-queue` held on sim; now: cannot run here" in done.stderr
    assert "claims.toml no longer has this claim" in done.stderr
    assert thalweg("reproduce", "./mine", "--record").returncode == 0
    assert thalweg("reproduce", "./mine", "--check").returncode == 0


def test_the_duration_of_a_different_experiment_count_is_not_recorded(
    thalweg: Callable[..., Any], study: Study
) -> None:
    def recorded() -> Any:
        assert thalweg("reproduce", "./mine", "--record").returncode == 0
        return json.loads(Path("mine/found.json").read_text())["engines"]["sim"]["full"]["seconds"]

    study(QUEUE)
    seconds = recorded()
    assert seconds > 0
    assert recorded() == seconds, "nothing was run, and it took nothing"
    more = HEAD + '[parts.more]\nscenario = "alone.toml"\nquick = { repetitions = 1 }\n'
    study(QUEUE, head=more)
    assert recorded() is None


def test_a_check_without_a_record_fails(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE)
    done = thalweg("reproduce", "./mine", "--check")
    assert done.returncode == 1
    assert "thalweg reproduce mine --engine sim --record" in done.stderr


def test_unsupported_claims_are_reported_and_the_rest_is_judged(thalweg: Callable[..., Any], study: Study) -> None:
    claim = QUEUE.replace('"cubic"', '"synthetic"').replace("cubic-fills", "synthetic-fills")
    study(QUEUE, claim, scenario=SCENARIO.replace('["cubic", "bbr"]', '["cubic", "bbr", "synthetic"]'))
    [engine] = json.loads(thalweg("reproduce", "./mine", "--json").stdout)["studies"][0]["engines"]
    rest, lacking = engine["claims"]
    assert rest["verdict"] == "holds"
    assert (lacking["verdict"], lacking["note"]) == (
        "cannot run here",
        "the engine sim has no congestion control `synthetic` here",
    )


def test_untrustworthy_experiments_are_run_again_on_request(
    thalweg: Callable[..., Any], study: Study, tmp_path: Path
) -> None:
    study(QUEUE)
    words = ["reproduce", "mine", "--out", "out"]
    assert thalweg(*words).returncode == 0
    file = next((tmp_path / "out").glob("mine/sim/*/flows/*.parquet"))
    pl.read_parquet(file).with_columns(untrustworthy=pl.lit("the host was busy")).write_parquet(file)
    assert "untrustworthy, and run again" not in thalweg(*words).stderr
    again = thalweg(*words, "--retry-untrustworthy")
    assert "untrustworthy, and run again: 1 of 12 finished experiments\n" in again.stderr
    assert pl.read_parquet(file)["untrustworthy"].to_list() == [None]


def test_quick_runs_fewer_points_and_lists_what_it_omits(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE.replace('"4bdp"', '"1bdp"'))
    [engine] = json.loads(thalweg("reproduce", "./mine", "--quick", "--json").stdout)["studies"][0]["engines"]
    assert engine["experiments"] == 4
    [claim] = engine["claims"]
    assert claim["verdict"] == "not in the quick set"
    assert claim["note"] == "`alone` is not run at path.buffer = 1bdp in the quick set, only at 4bdp"


def test_a_point_of_no_set_is_not_reported_as_in_the_full_set(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE.replace('"path.buffer" = "4bdp"', "buffer_bdp = { at_least = 5 }"))
    [engine] = json.loads(thalweg("reproduce", "./mine", "--quick", "--json").stdout)["studies"][0]["engines"]
    assert engine["claims"][0]["verdict"] == "cannot run here"


def test_an_ambiguous_side_is_refused_before_anything_runs(thalweg: Callable[..., Any], study: Study) -> None:
    study(
        QUEUE.replace(
            '{ where = { "flow.bulk.cc" = "bbr" } }', '{ where = { "flow.bulk.cc" = "bbr", "path.buffer" = "*" } }'
        )
    )
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "`claims.0.against` does not specify the path.buffer with which a point is compared" in done.stderr
    assert "mine/claims.toml:14" in done.stderr
    assert 'add "path.buffer" = ... to `against.where`' in done.stderr
    assert not Path("runs").exists()


def test_a_point_pairs_with_one_of_two_values(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE.replace('"flow.bulk.cc" = "bbr"', '"flow.bulk.cc" = "*"'))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 0, done.stderr
    assert "sim: 1 of 1 claims hold" in done.stdout


def test_an_unknown_engine_is_reported_with_the_known_ones(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE)
    done = thalweg("reproduce", "./mine", "--engine", "ns3")
    assert done.returncode == 2
    assert "expected one of sim, kernel, uml, vm" in done.stderr


def test_an_unwritable_path_is_reported_before_anything_runs(
    thalweg: Callable[..., Any], study: Study, tmp_path: Path
) -> None:
    study(QUEUE)
    (tmp_path / "file").write_text("in the way")
    done = thalweg("reproduce", "./mine", "--out", "file")
    assert done.returncode == 3
    assert "file/mine/sim" in done.stderr


def test_a_figure_that_omits_a_key_is_refused(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE, FIGURE.replace('series = ["flow.bulk.cc"]', ""))
    done = thalweg("reproduce", "./mine")
    assert done.returncode == 2
    assert "the figure `queue` does not distinguish the values of `flow.bulk.cc`" in done.stderr


def test_scenario_overrides_are_checked_at_their_own_position(thalweg: Callable[..., Any], study: Study) -> None:
    study(QUEUE, head=HEAD.replace('"path.buffer" = ["4bdp"]', '"path.bufer" = ["4bdp"]'))
    done = thalweg("reproduce", "./mine", "--quick")
    assert done.returncode == 2
    assert "did you mean `path.buffer`?" in done.stderr
    assert "in parts.alone" in done.stderr


@pytest.mark.parametrize(("marked", "code", "extent"), [(1, Exit.INCOMPLETE, "part"), (4, Exit.NO_EVIDENCE, "none")])
def test_claims_on_untrustworthy_experiments_fail(
    thalweg: Callable[..., Any], study: Study, marked: int, code: Exit, extent: str
) -> None:
    study(QUEUE, scenario=SCENARIO.replace("repetitions = 3", "repetitions = 1"))
    assert thalweg("reproduce", "./mine").returncode == 0
    for file in sorted(Path("runs").glob("**/flows/*"))[:marked]:
        pl.read_parquet(file).with_columns(untrustworthy=pl.lit("the host was busy")).write_parquet(file)
    again = thalweg("reproduce", "./mine")
    assert again.returncode == code
    assert f"{marked} of 4 experiments {'is' if marked == 1 else 'are'} untrustworthy" in again.stderr
    (engine,) = json.loads(thalweg("reproduce", "./mine", "--json").stdout)["studies"][0]["engines"]
    assert engine["evidence"] == extent


def test_a_study_with_copied_repetitions_reports_it(thalweg: Callable[..., Any], study: Study) -> None:
    study(WRONG, scenario=SCENARIO.replace('start_jitter = "1rtt"\n', ""))
    assert "the repetitions are copies of one another" in thalweg("reproduce", "./mine").stderr
