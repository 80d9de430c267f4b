"""Generators of files from the declarations in Rust, used by `tools/generate.py`."""
