"""Confidence intervals, tests and fairness indices."""
