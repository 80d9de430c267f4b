"""Differences between runs, and what is doubtful about them."""
