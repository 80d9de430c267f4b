"""The claims of a study, as its files declare them."""
