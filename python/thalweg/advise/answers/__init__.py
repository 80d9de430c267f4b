"""Answers, and the policy and roll-out that are derived from them."""
