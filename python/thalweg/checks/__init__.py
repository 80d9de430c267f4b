"""User-defined bounds on measures of a run, judged by their intervals over repetitions.

    from thalweg import checks, results
    bound = checks.Check.parse("goodput(ours) > 0.9 * goodput(base)", flows=["ours", "base"], points=[{}])
    checks.judge(results.open_run("runs/mine-sim-1a2b3c4d"), [bound])

The grammar and the verdicts are defined in docs/reference/checks.md.
"""

from thalweg.checks.check import Bound, Check, Side, parse_all
from thalweg.checks.judging import Finding, Outcome, judge
from thalweg.checks.terms import HARM, Term, TermError

__all__ = ["HARM", "Bound", "Check", "Finding", "Outcome", "Side", "Term", "TermError", "judge", "parse_all"]
