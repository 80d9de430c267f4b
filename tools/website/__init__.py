"""Builds the documentation as a website."""
