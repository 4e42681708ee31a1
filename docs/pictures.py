"""Draws the pictures of the pages, by the code that stands above each of them.

python docs/pictures.py

Three pictures show what `benchmarks/` has measured, and one draws a formula.
"""

import contextlib
import io
import json
import math
import re
import textwrap
from pathlib import Path
from typing import Any

import torch

from pyg_recmetrics import plot as style

HERE = Path(__file__).resolve().parent
PAGES = [HERE / f"{name}.md" for name in ("start", "groups")]
GROWTH = HERE.parent / "benchmarks" / "growth.json"
MEASURED = HERE.parent / "benchmarks" / "README.md"

#: A block of code, and the name of the picture below it if there is one.
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n!\[[^\]]*\]\((images/\w+\.png)\))?", flags=re.DOTALL)

#: The margins whose users are drawn, and the standard deviation of NDCG@20 of LightGCN on Gowalla.
MARGINS, DEVIATION = (0.01, 0.005, 0.002, 0.001), 0.181

#: What stands beside the bars of an evaluation of Gowalla, and how its row in the table begins.
SPEED = {
    "evaluate, default metrics": "`evaluate`, default",
    "evaluate, every metric to 100": "`evaluate`, every",
    "evaluate, ROC-AUC and PR-AUC": "`evaluate` with ROC-AUC",
    "PyG's LinkPred* metrics": "lists of 20 and PyG's",
    "loop of PyG's LightGCN example": "evaluation loop of PyG's",
    "recometrics": "recometrics 0.1.6, precision",
}

#: Dots per inch: sharp where the page is as wide as a text.
RESOLUTION = 150


def draw(folder: Path) -> None:
    """Writes the pictures into a folder."""
    (folder / "images").mkdir(exist_ok=True)
    for page in PAGES:
        draw_page(page, folder)
    draw_speed(folder)
    draw_growth(folder)
    draw_coverage(folder)
    draw_margins(folder)


def draw_page(page: Path, folder: Path) -> None:
    """Draws what a page shows, by its code."""
    torch.manual_seed(0)
    namespace: dict[str, Any] = {}
    blocks = BLOCK.findall(page.read_text())
    while not blocks[-1][1]:  # what draws nothing may need other packages
        blocks.pop()
    for code, name in blocks:
        with contextlib.redirect_stdout(io.StringIO()):
            if name:
                eval(code, namespace).figure.savefig(folder / name, dpi=RESOLUTION)
            else:
                exec(code, namespace)


def draw_speed(folder: Path) -> None:
    """Draws how long an evaluation of Gowalla takes, ours and with what people use now."""
    from matplotlib.figure import Figure

    table = MEASURED.read_text()
    seconds = {}
    for name, row in SPEED.items():
        (found,) = re.findall(rf"^\| {re.escape(row)}[^|]*\| ([\d.]+) s \|", table, re.MULTILINE)
        seconds[name] = float(found)
    figure = Figure(figsize=(5, 2.3), layout="constrained")
    axes = figure.subplots()
    colors = [style.COLORS[0] if name.startswith("evaluate") else style.GREY for name in seconds]
    bars = axes.barh(list(seconds), list(seconds.values()), color=colors, height=0.7)
    axes.bar_label(bars, fmt="%.1f s", padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(right=1.1 * max(seconds.values()))
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(folder / "images" / "speed.png", dpi=RESOLUTION)


def draw_growth(folder: Path) -> None:
    """Draws seconds against each size, with logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    *panels, legend = figure.subplots(2, 3).flat
    growth = json.loads(GROWTH.read_text())
    for axes, (name, series) in zip(panels, growth.items(), strict=True):
        points, seconds = series["points"], series["seconds"]
        bare, *ours = seconds
        axes.plot(points, seconds[bare], label=bare, color=style.GREY, linewidth=style.LINE_WIDTH)
        for index, what in enumerate(ours):
            look = style.style_of(index)
            axes.plot(points, seconds[what], label=what, **look)
        _scale(axes, points, [value for values in seconds.values() for value in values])
        proportional = [seconds[ours[0]][0] * point / points[0] for point in points]
        axes.plot(points, proportional, ":", color=style.GREY, linewidth=1, label="proportional")
        axes.set_xlabel(name)
        axes.set_title(_sizes(series["fixed"]), loc="left", fontsize=8, color=style.NOTE_COLOR)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[::3]:
        axes.set_ylabel("seconds")
    legend.set_axis_off()
    lines = panels[0].get_lines()
    legend.legend(handles=lines, loc="center", frameon=False, handlelength=2.5)
    figure.savefig(folder / "images" / "growth.png", dpi=RESOLUTION)


def _scale(axes: Any, points: list[int], seconds: list[float]) -> None:
    """Makes both axes logarithmic, with all points on the one and whole decades on the other."""
    from matplotlib.ticker import EngFormatter

    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    axes.set_xticks(points)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(axis="x", labelsize="small")
    axes.yaxis.set_major_formatter("{x:g}")
    decades = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    axes.set_ylim(*(10.0**decade for decade in decades))


def _sizes(fixed: dict[str, int]) -> str:
    """Says what does not change, such as "4,000 users, k = 20"."""
    sizes = [
        f"{name} = {size:,}" if name in ("k", "R") else f"{size:,} {name}"
        for name, size in fixed.items()
    ]
    # Spaces that do not break keep a number with its name.
    return textwrap.fill(", ".join(size.replace(" ", "\xa0") for size in sizes), 40)


def draw_coverage(folder: Path) -> None:
    """Draws how often two intervals hold, against how much runs vary."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    deviations, rows = _read_coverage()
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (users, lines) in zip(panels, rows.items(), strict=True):
        for index, (name, shares) in enumerate(lines.items()):
            # Of each interval, three seeds are filled and five are hollow.
            which, is_hollow = divmod(index, 2)
            look = style.style_of(which)
            fill = {"markerfacecolor": "white"} if is_hollow else {}
            axes.plot(deviations, shares, label=name, **look | fill)
        axes.axhline(0.95, color=style.GREY, linewidth=1, zorder=1)
        axes.set(xlabel="standard deviation of the effect of a seed", ylim=(0, 1))
        axes.set_title(f"{users} users", loc="left", fontsize=9, color=style.NOTE_COLOR)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 0.95])
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("intervals that hold the true mean")
    panels[1].legend(loc="lower right", frameon=False, handlelength=2.5)
    figure.savefig(folder / "images" / "coverage.png", dpi=RESOLUTION)


def draw_margins(folder: Path) -> None:
    """Draws how many users a margin takes, against how many there are."""
    from matplotlib.figure import Figure

    from pyg_recmetrics.margins import needed_users

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    populations = [10 ** (3 + step / 40) for step in range(241)]
    axes.plot(populations, populations, color=style.GREY, linewidth=1, label="all users")
    for index, margin in enumerate(MARGINS):
        needed = [needed_users(DEVIATION**2, margin, 0.05, number) for number in populations]
        ranked = [
            number if few > number / 2 else few
            for few, number in zip(needed, populations, strict=True)
        ]
        look = style.style_of(index) | {"marker": "", "label": f"± {margin:g}"}
        axes.plot(populations, ranked, **look)
        end = f"{round(needed[-1], -2):,.0f}"
        axes.annotate(end, (populations[-1], needed[-1]), (4, -3), textcoords="offset points")
    axes.set(xscale="log", yscale="log", xlabel="users of the task", ylabel="users ranked")
    axes.set_ylim(300, 3e6)
    axes.set_title(
        f"95% confidence, one metric of standard deviation {DEVIATION:g}",
        loc="left",
        fontsize=9,
        color=style.NOTE_COLOR,
    )
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False, handlelength=2.5)
    figure.savefig(folder / "images" / "margin.png", dpi=RESOLUTION)


def _read_coverage() -> tuple[list[float], dict[str, dict[str, list[float]]]]:
    """Reads the deviations, and by the number of users what the lines are called and show."""
    (table,) = re.findall(
        r"^\| interval .*?(?=\n\n)", MEASURED.read_text(), re.DOTALL | re.MULTILINE
    )
    head, _, *rows = ([cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines())
    lines: dict[str, dict[str, list[float]]] = {}
    for interval, users, seeds, *shares in rows:
        name = f"{interval.strip('`')}, {seeds} seeds"
        lines.setdefault(users, {})[name] = list(map(float, shares))
    return list(map(float, head[3:])), lines


if __name__ == "__main__":
    draw(HERE)
