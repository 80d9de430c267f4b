"""What a study claims, as its files declare it."""
