"""Exit codes and sentences for results that rest on some of the experiments, or on none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.analysis.comparing.evidence import Evidence, Extent

CODES: dict["Extent", Exit] = {"all": Exit.FINE, "part": Exit.INCOMPLETE, "none": Exit.NO_EVIDENCE}

RANK = (
    Exit.FINE,
    Exit.INCOMPLETE,
    Exit.NO_EVIDENCE,
    Exit.NOT_SETTLED,
    Exit.CHECK_BROKEN,
    Exit.FAILED,
    Exit.INTERRUPTED,
)
"""Exit codes from the best outcome to the worst."""


def code(evidence: "Evidence") -> Exit:
    """Return the exit code of a command whose results rest on this evidence."""
    return CODES[evidence.extent]


def worst(codes: Sequence[Exit]) -> Exit:
    """Return the exit code that reports the worst of several outcomes.

    >>> worst([Exit.FINE, Exit.FAILED, Exit.NO_EVIDENCE]).name
    'FAILED'
    """
    return max(codes, key=RANK.index, default=Exit.FINE)


def min_extent(evidence: "Sequence[Evidence]") -> "Extent":
    """Return the extent of the run with the least evidence."""
    return max((item.extent for item in evidence), key=list(CODES).index, default="all")


def sentence(text: str) -> str:
    """Return a caution as a sentence.

    >>> sentence("nothing was compared")
    'Nothing was compared.'
    """
    return f"{text[:1].upper()}{text[1:]}."
