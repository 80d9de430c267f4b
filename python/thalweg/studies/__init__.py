"""Studies: a paper's experiments as scenarios, and its claims, judged one by one.

    study = load(find("itc18-mixed-workload"))
    planned = plan(study, engine, capabilities, quick=True)
    run(planned, folder(study, "sim", RUNS, quick=True), runner)
    planned.judged["large-cubic-collapses-beside-bbr-bursts"].verdict

docs/reference/studies.md describes the contents of a study's folder.
"""

from thalweg.report.pages.study import write as write_page
from thalweg.report.text.claim_verdicts import UNJUDGED, ClaimVerdict
from thalweg.studies.claims.load import ALL, Study, find, load, ready_made
from thalweg.studies.judging.judge import judge
from thalweg.studies.judging.judged import Judged
from thalweg.studies.pages.page import as_page
from thalweg.studies.running.reproduce import RUNS, Reproduced, folder, plan, run

__all__ = [
    "ALL",
    "RUNS",
    "UNJUDGED",
    "ClaimVerdict",
    "Judged",
    "Reproduced",
    "Study",
    "as_page",
    "find",
    "folder",
    "judge",
    "load",
    "plan",
    "ready_made",
    "run",
    "write_page",
]
