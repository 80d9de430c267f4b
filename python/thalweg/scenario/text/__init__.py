"""Quantities, and texts for errors and hints."""
