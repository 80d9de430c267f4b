"""Intervals and indices."""
