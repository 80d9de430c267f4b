"""Parts of bench/recording.py: a machine with connections on it, and a file for each measurement."""
