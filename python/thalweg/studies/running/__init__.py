"""Runs of a study, and their recorded results."""
