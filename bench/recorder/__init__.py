"""What bench/recording.py is made of: a machine with connections on it, and a file for each thing that is measured."""
