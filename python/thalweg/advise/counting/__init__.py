"""Counts of records, by question."""
