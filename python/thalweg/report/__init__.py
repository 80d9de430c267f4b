"""Creates reports: one HTML file per set of run directories, which works offline and is self-contained.

    from thalweg import report
    report.write([Path("runs/itc18-mixes-sim-1a2b3c4d")], Path("report.html"))

The numbers about runs come from `thalweg.analysis`; this layer chooses units and words, and draws.
"""

from thalweg.report.pages.write import figures, write

__all__ = ["figures", "write"]
