"""Commands about scenarios, runs and studies: each parses arguments, calls other layers and prints."""
