"""Tables in Markdown that the documentation and the README take from the package."""

from pyg_recmetrics import conventions, metrics


def metric_table() -> str:
    """All metrics of the registry."""
    lines = ["| metric | what it says | formula | range |", "|---|---|---|---|"]
    for name in metrics.names():
        definition = metrics.definition(name)
        options = "".join(
            f"<br>{name}: " + (", ".join(f"`{word}`" for word in parameter.choices) or "a number")
            for name, parameter in definition.parameters.items()
        )
        spelling = f"`{name}@k`" if definition.has_cut_off else f"`{name}`"
        low, high = (f"{bound:g}".replace("inf", "∞") for bound in definition.bounds)
        cells = [
            spelling + options,
            definition.docstring.summary,
            f"${definition.docstring.formula}$",
            f"{low} to {high}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


_STAR = """A star marks a metric that the library calls so but that is another one; a dash, what it
does not offer. Each convention is tested against the real library, on this toy, on thousands of
random rankings and on a trained LightGCN, to 1e-6; `rectorch` and `ngcf` against their formulas.
Plain bugs of a library are not reproduced; its section says which."""


def conventions_page() -> str:
    """The toy ranking in all conventions, and what each of them is."""
    parts = [f"```text\n{conventions.table()}\n```", _STAR]
    for name, convention in conventions.CONVENTIONS.items():
        parts += [f"## {name}", f"{convention.source}. {convention.note}".rstrip()]
        rows = [
            f"| `{asked}` | `{convention.resolve(asked)}` |"
            for asked in _examples(convention)
            if str(convention.resolve(asked)) != asked
        ]
        if rows:
            parts += ["\n".join(["| asked | computed |", "|---|---|", *rows])]
        if convention.empty_target_action != "skip":
            counted = {"neg": "0", "pos": "1"}[convention.empty_target_action]
            parts += [f"Users without ground truth count as {counted}."]
        if convention.population.words:
            parts += [f"Evaluates users with {', '.join(convention.population.words)}."]
    return "\n\n".join(parts)


def _examples(convention: conventions.Convention) -> list[str]:
    """Every metric that a convention offers, at 10 where it has a cut-off."""
    offered = metrics.names() if convention.metrics is None else list(convention.metrics)
    return [f"{name}@10" if metrics.definition(name).has_cut_off else name for name in offered]
