"""Reads the cells and the notes of a table in HTML."""

from html.parser import HTMLParser


class HtmlTable(HTMLParser):
    """The text of every cell of a table, and of every note below it."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.notes, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "p":
            self.notes.append("")
        if tag not in ("b", "span"):
            self.inside = tag

    def handle_endtag(self, tag):
        if tag not in ("b", "span"):
            self.inside = None

    def handle_data(self, data):
        if self.inside in ("td", "th"):
            self.rows[-1][-1] += data
        if self.inside == "p":
            self.notes[-1] += data
