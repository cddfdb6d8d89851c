"""Results as pages that people look at."""
