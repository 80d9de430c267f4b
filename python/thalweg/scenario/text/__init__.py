"""Quantities, and words for errors and hints."""
