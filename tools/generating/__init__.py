"""Makes what is generated from the declarations in Rust: see `tools/generate.py`."""
