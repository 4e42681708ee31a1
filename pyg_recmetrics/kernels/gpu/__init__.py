"""Fast scores on a GPU, which are searched and counted without being stored."""
