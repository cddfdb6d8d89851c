"""Alignment as a sequence of decisions, learned by reinforcement: environment, policy, training, decoding."""
