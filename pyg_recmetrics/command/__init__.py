"""The command `pyg-recmetrics`: files in, tables out."""
