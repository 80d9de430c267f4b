"""Rows of a run, selected and derived."""
