"""Counts of records, by question: selects rows, parts of the traffic and arms."""
