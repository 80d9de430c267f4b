"""Commands about scenarios, runs and studies: each parses its arguments, calls and prints."""
