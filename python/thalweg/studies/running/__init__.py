"""Runs of a study, and what was recorded of them."""
