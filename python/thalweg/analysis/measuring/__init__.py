"""Measures of a repetition, and their summary over repetitions."""
