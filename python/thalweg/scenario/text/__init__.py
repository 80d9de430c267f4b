"""Quantities, and hints for malformed ones."""
