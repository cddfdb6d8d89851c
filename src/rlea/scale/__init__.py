"""What runs on several processes and machines: the pass of the agent in supersteps, and tasks on a Ray cluster."""
