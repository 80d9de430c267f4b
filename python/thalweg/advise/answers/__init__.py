"""What an answer consists of, and what follows from it for servers."""
