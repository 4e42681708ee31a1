"""Tables that pages of the documentation take from the package.

`python docs/tables.py` writes them into the pages.
"""

import re
from collections.abc import Callable
from pathlib import Path

from toy_ranking import toy_table

from pyg_recmetrics import conventions, metrics

_LEGEND = """\\- The library does not offer the metric.

Each convention is tested against the real library: on this toy ranking, on thousands of random
rankings, and on a trained LightGCN, to 1e-6. `pykeen`, `ogb`, `tgb`, `relbench` and `mind` are
tested on queries of their own, most of which have equal scores, to 1e-9. There are three
exceptions. `rectorch`, `ncf` and `ngcf` (a notebook whose NDCG compares a list with itself) are
tested against their formulas. Plain bugs of a library are not reproduced. The section of the
library says which; so does its `note`, as in `conventions.get("torchmetrics").note`."""


def with_tables(page: Path) -> str:
    """Returns a page with each table as it is now, between the comments that name it."""

    def written(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{TABLES[found[2]]()}\n\n{found[3]}"

    pattern = r"(<!-- ([\w ]+): written by docs/tables\.py -->).*?(<!-- end -->)"
    return re.sub(pattern, written, page.read_text(), flags=re.DOTALL)


def metric_table() -> str:
    """Returns the table of all registered metrics."""
    lines = ["| metric | what it says | formula | range |", "|---|---|---|---|"]
    for name in metrics.names():
        definition = metrics.definition(name)
        options = "".join(
            f"<br>{name}: " + (", ".join(f"`{value}`" for value in parameter.words) or "a number")
            for name, parameter in definition.parameters.items()
        )
        spelling = f"`{name}@k`" if definition.has_cut_off else f"`{name}`"
        if definition.aliases:
            spelling += "<br>also " + ", ".join(f"`{alias}`" for alias in definition.aliases)
        low, high = (f"{bound:g}".replace("inf", "∞") for bound in definition.range)
        cells = [
            spelling + options,
            definition.summary,
            f"${_formula(definition)}$",
            f"{low} to {high}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _formula(definition: metrics.Definition) -> str:
    """Returns the right-hand side of the formula, as LaTeX."""
    math = definition.about.partition(".. math::")[2].lstrip("\n").partition("\n\n")[0]
    right = " ".join(line.strip() for line in math.split("\n")).partition("=")[2].strip()
    return right.replace("\\, ", "")  # a Markdown page would read a comma


def conventions_page() -> str:
    """Returns the toy ranking in all conventions, and a section for each of them."""
    sections = [_section(convention) for convention in conventions.CONVENTIONS.values()]
    return "\n\n".join([f"```text\n{toy_table()}\n```", _LEGEND, *sections])


def _section(convention: conventions.Convention) -> str:
    paragraphs = [f"### {convention.name}", f"{convention.source}. {convention.note}".rstrip()]
    spellings = [
        f"| `{asked}` | `{convention.resolve(asked)}` |"
        for asked in _offered(convention)
        if str(convention.resolve(asked)) != asked
    ]
    if spellings:
        head = [f"| with `convention='{convention.name}'` | the same spelled out |", "|---|---|"]
        paragraphs.append("\n".join([*head, *spellings]))
    if convention.empty_target_action != "skip":
        counted_as = {"neg": "0", "pos": "1"}[convention.empty_target_action]
        paragraphs.append(f"Users without ground truth count as {counted_as}.")
    if conditions := convention.population.describe():
        paragraphs.append(f"Evaluates users with {', '.join(conditions)}.")
    return "\n\n".join(paragraphs)


def _offered(convention: conventions.Convention) -> list[str]:
    """Returns every metric that a convention offers, at 10 where it has a cut-off."""
    names = metrics.names() if convention.metrics is None else list(convention.metrics)
    return [f"{name}@10" if metrics.definition(name).has_cut_off else name for name in names]


#: The tables by the names that pages call them.
TABLES: dict[str, Callable[[], str]] = {
    "all metrics": metric_table,
    "all conventions": conventions_page,
}

if __name__ == "__main__":
    for page in Path(__file__).parent.glob("*.md"):
        page.write_text(with_tables(page))
