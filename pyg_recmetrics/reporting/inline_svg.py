"""Pictures as vector graphics within a page, in the colours of the page."""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from typing import cast
from xml.etree import ElementTree

from pyg_recmetrics.extras import requires_extra
from pyg_recmetrics.plot.picture import Description, description_of
from pyg_recmetrics.plot.style import COLORS, GREY, NOTE_COLOR

#: Width and height in inches. The page scales pictures to its width, and text with them, so a
#: small figure has text that can be read on a telephone.
_WIDTH, HEIGHT = 4.6, 3.4

#: What separates names in an attribute.
SEPARATOR = "\n"

#: What takes the place of :data:`~pyg_recmetrics.plot.style.COLORS` on a dark page: about the same
#: hues, with a contrast of at least 3 : 1 on it.
DARK_COLORS = ("#4B92F0", "#F59A35", "#2DD894", "#DE4F93", "#BFC1FF", "#B07A42", "#FFFFFF")

#: The variables of the page that stand for the colours of pictures. Black needs none: all that is
#: black has the colour of the text.
_VARIABLES = {
    **{color.lower(): f"var(--curve-{number})" for number, color in enumerate(COLORS)},
    GREY.lower(): "var(--seen)",
    NOTE_COLOR.lower(): "var(--muted)",
    "#ffffff": "var(--page)",  # the inside of hollow markers
    "#000000": "currentColor",
}

_COLOR = re.compile("|".join(map(re.escape, _VARIABLES)))
#: The font in a style, as versions of matplotlib write it: only its size is kept.
_FONT = re.compile(r"font: ([\d.]+px) [^;]+")
_FAMILY = re.compile(r"font-family: [^;]+(; |$)")
#: A reference to an id, as in `#name` and `url(#name)`.
_REFERENCE = re.compile(r"(?<=#)[\w-]+")
_REFERRING = ("href", "clip-path")

#: What the ids of described marks start with.
_MARK = "described-"


def inline_svg(
    draw: Callable[..., object], title: str, height: float = HEIGHT
) -> ElementTree.Element:
    """Returns a picture as an `svg` element, the same one for the same picture.

    Marks that are described have a title, and `data-recommender` and `data-metric` with names.

    Args:
        draw (callable): Draws on the axes that it gets as `ax`.
        title (str): The name of the picture for those who do not see it.
        height (float, optional): The height of the figure, in inches.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    with requires_extra("matplotlib", "plot", "report"):
        from matplotlib import style
        from matplotlib.figure import Figure
    file = io.StringIO()
    # The settings of the user are left aside: the page has colours and a font of its own. Text
    # stays text. The salt makes ids depend on nothing but the picture.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "pyg_recmetrics"}
    with style.context(["default", settings]), warnings.catch_warnings():
        # A font of matplotlib only measures texts. The browser has letters of all languages.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(ax=figure.subplots())
        described: dict[str, Description] = {}
        for number, mark in enumerate(figure.findobj(lambda x: description_of(x) is not None)):
            mark.set_gid(f"{_MARK}{number}")
            described[f"{_MARK}{number}"] = cast(Description, description_of(mark))
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _to_html(ElementTree.fromstring(file.getvalue()), title, described)


def _to_html(
    svg: ElementTree.Element, title: str, described: Mapping[str, Description]
) -> ElementTree.Element:
    """Returns a file of matplotlib as a part of a page."""
    for element in svg.iter():
        _strip(element)
        if description := described.get(element.get("id", "")):
            _describe(element, description)
    for name in ("width", "height", "version"):
        svg.attrib.pop(name, None)
    content = ElementTree.tostring(svg) + title.encode()
    prefix = f"picture-{hashlib.sha256(content).hexdigest()[:10]}"
    _rename_ids(svg, prefix)
    label = ElementTree.Element("title", id=f"{prefix}-title")
    label.text = title
    svg.insert(0, label)
    svg.attrib |= {"role": "img", "aria-labelledby": f"{prefix}-title"}
    return svg


def _describe(element: ElementTree.Element, description: Description) -> None:
    title = ElementTree.Element("title")
    title.text = description.text
    element.insert(0, title)
    for name, values in (
        ("data-recommender", description.recommenders),
        ("data-metric", description.metrics),
    ):
        if values:
            element.set(name, SEPARATOR.join(values))


def _strip(element: ElementTree.Element) -> None:
    """Removes what a page does not need, and lets colours and fonts be those of the page."""
    element.tag = _local(element.tag)
    element.attrib = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.pop("space", None)
    if style := element.get("style"):
        style = _FAMILY.sub("", _FONT.sub(r"font-size: \1", style))
        element.set("style", _COLOR.sub(lambda color: _VARIABLES[color[0]], style))
    for child in list(element):
        # The style would apply to the whole page.
        if _local(child.tag) in ("metadata", "style"):
            element.remove(child)


def _rename_ids(svg: ElementTree.Element, prefix: str) -> None:
    """Keeps the ids that something refers to, and makes them unlike those of other pictures."""
    referring = [
        (element, name) for element in svg.iter() for name in _REFERRING if element.get(name)
    ]
    used = {id for element, name in referring for id in _REFERENCE.findall(element.attrib[name])}
    for element in svg.iter():
        id = element.attrib.pop("id", None)
        if id in used:
            element.set("id", f"{prefix}-{id}")
    for element, name in referring:
        element.set(name, _REFERENCE.sub(rf"{prefix}-\g<0>", element.attrib[name]))


def _local(name: str) -> str:
    """Returns a name without its namespace, as HTML writes it."""
    return name.rpartition("}")[2]
