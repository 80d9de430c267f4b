"""Verdicts, and what makes them doubtful."""
