"""Verdicts on claims of a paper."""

from typing import Literal

ClaimVerdict = Literal["holds", "does not hold", "not settled", "cannot run here", "not in the quick set"]

UNJUDGED: tuple[ClaimVerdict, ...] = ("cannot run here", "not in the quick set")
"""Verdicts of claims for which nothing was run."""
