r"""Reads the cells and the notes of a table in LaTeX."""

import re

#: What LaTeX prints for commands and for ligatures.
PRINTED = {
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textbar{}": "|",
    r"$\pm$": "±",
    r"$^{\dagger}$": "†",
    "$<$": "<",
    "$>$": ">",
    "$-$": "\N{MINUS SIGN}",
    "{[}": "[",
    "{*}": "*",
    "~": "\N{NO-BREAK SPACE}",
}
SPELLED = re.compile("|".join(re.escape(text) for text in sorted(PRINTED, key=len, reverse=True)))


def printed(latex):
    """The text that LaTeX prints, from within a cell or a paragraph."""
    assert not set("&%$#_{}\\^") & set(SPELLED.sub("", latex)), latex
    blanks_as_printed = re.sub(" +", " ", latex).strip(" ")
    return SPELLED.sub(lambda match: PRINTED[match[0]], blanks_as_printed)


def _inside(cell):
    """What a cell in bold type, underlined or over several columns holds."""
    commands = r"textbf|underline|multicolumn\{\d+\}\{@\{\}l@\{\}\}"
    wrapped = re.fullmatch(rf"\\(?:{commands})\{{(.*)\}}", cell)
    return wrapped[1] if wrapped else cell


class LatexTable:
    """The text of every cell of a table, and of every note below it."""

    def __init__(self, latex):
        lines = latex.splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            # Both commands look behind the end of their line for an argument.
            is_argument = before.endswith((r"\\", r"\midrule")) and line[0] in "[*"
            assert not is_argument, line
        rows = [line.removesuffix(r" \\") for line in lines if line.endswith(r" \\")]
        self.rows = [[printed(_inside(cell)) for cell in row.split(" & ")] for row in rows]
        paragraphs = [line for line in lines if line.endswith(r"\par")]
        self.notes = [printed(line.removesuffix(r"\par")) for line in paragraphs]
