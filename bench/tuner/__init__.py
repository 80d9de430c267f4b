"""Networks, guests and programs with which bench/tuning.py and bench/tuning_guest.py measure `thalweg-agent tune`."""
