"""Tables for a terminal."""


def format_table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a table: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for first, *others in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return [lines[0], "-" * max(len(line) for line in lines), *lines[1:]]
