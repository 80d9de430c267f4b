"""Parts of bench/recording.py: a machine with connections, and a module for each measurement."""
