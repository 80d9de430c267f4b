"""Verdicts, and cautions about them."""
