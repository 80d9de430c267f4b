"""Generators of files, used by `tools/generate.py`."""
