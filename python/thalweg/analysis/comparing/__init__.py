"""Differences between runs, and cautions about them."""
