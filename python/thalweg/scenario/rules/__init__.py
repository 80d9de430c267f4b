"""Rules about combinations of keys of a scenario."""
