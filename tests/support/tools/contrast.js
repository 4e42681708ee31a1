// Finds the texts of a page whose contrast to what is painted below them is less than `least`, by
// the formula of the Web Content Accessibility Guidelines 2.2, and those that cannot be seen even
// when they are scrolled to. It knows colours of HTML and fills of SVG, with their opacity. It knows
// neither pictures nor gradients.
(least) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pixel = canvas.getContext("2d", { willReadFrequently: true });

  // Layers are [colour, opacity], the lowest first.
  const paint = (layers) => {
    pixel.globalAlpha = 1;
    pixel.clearRect(0, 0, 1, 1);
    for (const [color, opacity] of layers) {
      pixel.globalAlpha = opacity;
      pixel.fillStyle = color;
      pixel.fillRect(0, 0, 1, 1);
    }
    return pixel.getImageData(0, 0, 1, 1).data;
  };
  const luminance = (rgb) => {
    const linear = (part) => {
      const x = part / 255;
      return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one) + 0.05, luminance(other) + 0.05].sort((a, b) => a - b);
    return high / low;
  };

  const isSvg = (element) => element instanceof SVGElement;
  const opacity = (element) => {
    let product = 1;
    for (let each = element; each; each = each.parentElement) {
      product *= getComputedStyle(each).opacity;
    }
    return product;
  };
  const inkOf = (element) => {
    const style = getComputedStyle(element);
    if (!isSvg(element)) return [style.color, opacity(element)];
    return [style.fill, opacity(element) * style.fillOpacity];
  };
  const isFilledAt = (shape, x, y) => {
    if (!(shape instanceof SVGGeometryElement) || getComputedStyle(shape).fill === "none") {
      return false;
    }
    const inside = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
    return shape.isPointInFill(inside);
  };
  const backgroundOf = (element, x, y) => {
    if (isSvg(element) && element.tagName !== "svg") {
      return isFilledAt(element, x, y) ? [inkOf(element)] : [];
    }
    return [[getComputedStyle(element).backgroundColor, opacity(element)]];
  };

  // What is painted where a text stands, or nothing where it is hidden.
  const layersAt = (element, x, y) => {
    const stack = document.elementsFromPoint(x, y);
    const place = stack.indexOf(element);
    if (place < 0) return null;
    const below = stack.slice(isSvg(element) ? place + 1 : place).reverse();
    return below.flatMap((each) => backgroundOf(each, x, y));
  };

  // Boxes of a pixel hide what is for screen readers alone. `checkVisibility` is true of an SVG group
  // that is not displayed.
  const isHidden = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const { display, overflowX } = getComputedStyle(each);
      if (display === "none" || (overflowX !== "visible" && each.offsetWidth <= 1)) return true;
    }
    return !element.checkVisibility({ visibilityProperty: true });
  };

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    const isName = parent.closest("svg title, svg desc");
    if (node.data.trim() && !isName && !isHidden(parent)) texts.push(node);
  }

  const pale = new Set();
  const unseen = [];
  for (const node of texts) {
    const parent = node.parentElement;
    parent.scrollIntoView({ behavior: "instant", block: "center", inline: "center" });
    const range = document.createRange();
    range.selectNodeContents(node);
    let isSeen = false;
    for (const line of range.getClientRects()) {
      for (const share of [0.1, 0.5, 0.9]) {
        const layers = layersAt(parent, line.x + share * line.width, line.y + line.height / 2);
        if (!layers) continue;
        isSeen = true;
        const background = paint(layers);
        const ratio = contrast(paint([...layers, inkOf(parent)]), background);
        if (background[3] < 255 || ratio < least) {
          pale.add(`${node.data.trim()}: ${ratio.toFixed(2)}`);
        }
      }
    }
    if (!isSeen) unseen.push(node.data.trim());
  }
  for (const element of document.querySelectorAll("*")) {
    element.scrollTo({ left: 0, top: 0, behavior: "instant" });
  }
  return { pale: [...pale], unseen, numTexts: texts.length };
}
