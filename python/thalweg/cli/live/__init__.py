"""Commands about the traffic of live servers."""
