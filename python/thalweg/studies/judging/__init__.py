"""Whether the claims hold."""
