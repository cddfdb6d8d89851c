"""Files: readers, writers, arrays, synthetic pairs."""
