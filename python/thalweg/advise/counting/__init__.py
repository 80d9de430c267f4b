"""Counts of records, by question: which rows, which parts of the traffic, which arms."""
