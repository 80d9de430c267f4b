"""Formats the output of commands."""
