"""The plan of a scenario."""
