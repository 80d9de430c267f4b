"""Runs studies, and records their results."""
