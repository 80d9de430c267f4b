"""Measures of run directories, with their uncertainty.

    from thalweg import analysis, results
    run = results.open_run("runs/itc18-mixes-sim-1a2b3c4d")
    analysis.summary(run).filter(measure="goodput", flow="large")

The measures are defined in docs/reference/analysis.md.
"""

from thalweg.analysis.comparing.cautions import COUNTS as CAUTION_COUNTS
from thalweg.analysis.comparing.cautions import cautions
from thalweg.analysis.comparing.cautions import starved as starved_cautions
from thalweg.analysis.comparing.comparison import Compared, Comparison, compare
from thalweg.analysis.comparing.distributions import rtt_distributions, transfer_distributions
from thalweg.analysis.comparing.evidence import Evidence, evidence, of_status
from thalweg.analysis.comparing.shares import CpuShare, is_of_a_share, shares
from thalweg.analysis.measuring.copies import caution as copies_caution
from thalweg.analysis.measuring.copies import copied, copies_remedy
from thalweg.analysis.measuring.measures import MEASURES, Measure
from thalweg.analysis.measuring.recorded import is_recorded, why_never
from thalweg.analysis.measuring.repetitions import repetitions
from thalweg.analysis.measuring.summary import flow_names, summary
from thalweg.analysis.statistics.difference import Difference, difference, half_width, holm
from thalweg.analysis.statistics.fairness import jain
from thalweg.analysis.statistics.harm import harm
from thalweg.analysis.statistics.intervals import CONFIDENCE, METHOD, Estimate, estimate, overlap
from thalweg.analysis.tables.derived import KEYS as DERIVED
from thalweg.analysis.tables.derived import derived, derived_from
from thalweg.analysis.tables.measured import OwnMeasure, measured
from thalweg.analysis.tables.series import QUANTITIES, Line, SampledQuantity, Series, series, typical_repetitions
from thalweg.analysis.tables.status import Failure, Status, status
from thalweg.analysis.tables.sweep import Axis, axes, quantity

__all__ = [
    "CAUTION_COUNTS",
    "CONFIDENCE",
    "DERIVED",
    "MEASURES",
    "METHOD",
    "QUANTITIES",
    "Axis",
    "Compared",
    "Comparison",
    "CpuShare",
    "Difference",
    "Estimate",
    "Evidence",
    "Failure",
    "Line",
    "Measure",
    "OwnMeasure",
    "SampledQuantity",
    "Series",
    "Status",
    "axes",
    "cautions",
    "compare",
    "copied",
    "copies_caution",
    "copies_remedy",
    "derived",
    "derived_from",
    "difference",
    "estimate",
    "evidence",
    "flow_names",
    "half_width",
    "harm",
    "holm",
    "is_of_a_share",
    "is_recorded",
    "jain",
    "measured",
    "of_status",
    "overlap",
    "quantity",
    "repetitions",
    "rtt_distributions",
    "series",
    "shares",
    "starved_cautions",
    "status",
    "summary",
    "transfer_distributions",
    "typical_repetitions",
    "why_never",
]
