"""Judges the claims of studies."""
