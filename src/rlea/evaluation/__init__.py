"""Metrics of links and rankings, error types of gold links, and a string baseline."""
