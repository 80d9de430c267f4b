"""The network and programs with which bench/tuning.py measures `thalweg-agent tune`."""
