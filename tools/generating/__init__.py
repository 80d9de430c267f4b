"""Generators of files from the declarations in Rust: see `tools/generate.py`."""
