"""What bench/tuning.py measures `thalweg-agent tune` on."""
