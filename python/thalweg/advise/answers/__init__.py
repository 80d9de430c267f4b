"""Answers, and the policy and roll-out that follow from them."""
