"""What checks, runs, reads and writes."""
