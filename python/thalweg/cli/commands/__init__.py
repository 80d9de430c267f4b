"""Commands about scenarios, runs, studies and this machine: each parses arguments, calls other layers and prints."""
