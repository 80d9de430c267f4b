"""Reports: run directories become one HTML file that works offline and can be passed on.

    from thalweg import report
    report.write([Path("runs/itc18-mixes-sim-1a2b3c4d")], Path("report.html"))

All numbers come from `thalweg.analysis`; this layer chooses units and words, and draws.
"""

from thalweg.report.pages.write import figures, write

__all__ = ["figures", "write"]
