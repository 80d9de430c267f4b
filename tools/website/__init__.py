"""Building the documentation as a site."""
