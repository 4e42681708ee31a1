"""Where it runs: devices, processes, and packages that may be missing."""
