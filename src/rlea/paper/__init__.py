"""The agent of the paper: environment, policy, REINFORCE, presets."""
