"""Reads records of live servers, which `thalweg-agent record` writes and `thalweg import` converts from other sources.

    records = read([Path("/var/lib/thalweg/records")])
    records.rows.filter(pl.col("kind") == "transfer").group_by("cc").agg(pl.col("goodput_bps").median()).collect()
    summarise(records).algorithms["bbr"].spreads["goodput"].quantile(0.5)

The columns are described in docs/reference/records.md.
"""

from thalweg.records.find import LeftOutFile
from thalweg.records.measures import MEASURES, Measure
from thalweg.records.missing import Missing
from thalweg.records.read import Records, read
from thalweg.records.sizes import SIZES, Size
from thalweg.records.spread import Spread
from thalweg.records.summary import COUNTED, Algorithm, Count, Summary, summarise, summary_of

__all__ = [
    "COUNTED",
    "MEASURES",
    "SIZES",
    "Algorithm",
    "Count",
    "LeftOutFile",
    "Measure",
    "Missing",
    "Records",
    "Size",
    "Spread",
    "Summary",
    "read",
    "summarise",
    "summary_of",
]
