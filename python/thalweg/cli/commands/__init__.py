"""Commands about scenarios, runs, studies and this machine."""
