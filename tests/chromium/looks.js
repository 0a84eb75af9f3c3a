// Facts about the page that is open, which a test reads.
() => {
  const channels = (color) => {
    const [r, g, b, a] = color.match(/[\d.]+/g).map(Number);
    return { rgb: [r, g, b], alpha: a === undefined ? 1 : a };
  };
  // WCAG 2.2, definition of relative luminance.
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.alpha > 0) return found.rgb;
    }
    return null; // the test takes it for an error: a page names its background
  };

  const broken = [];
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const parent = walker.currentNode.parentElement;
    if (!/[\p{L}\p{N}]/u.test(text) || ["STYLE", "style", "title"].includes(parent.tagName)) {
      continue; // neither a style nor a legend's colored square is text
    }
    const style = getComputedStyle(parent);
    const color = parent.ownerSVGElement ? style.fill : style.color;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    const ground = behind(parent);
    for (const word of walker.currentNode.textContent.matchAll(/(?<!\S)[\p{L}]{1,12}(?!\S)/gu)) {
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
    const drawn = parent.ownerSVGElement ? Math.hypot(parent.getScreenCTM().a, parent.getScreenCTM().b) : 1;
    texts.push({
      text,
      contrast: ground && contrast(channels(color).rgb, ground),
      ground: ground && luminance(ground),
      visible: parent.checkVisibility() && box.width > 0 && box.height > 0,
      left: box.left,
      right: box.right,
      size: parseFloat(style.fontSize) * drawn,
      slides: parent.closest(".wide svg") !== null, // wide drawings are moved by a finger
    });
  }
  const scrolled = [...document.querySelectorAll("*")]
    .filter((each) => !each.ownerSVGElement && each.scrollWidth > each.clientWidth + 1)
    .filter((each) => getComputedStyle(each).display !== "inline")
    .filter((each) => !each.matches(".wide:has(> svg)"))
    .map((each) => each.tagName + "." + each.className);
  return {
    texts,
    broken,
    scrolled,
    width: document.scrollingElement.scrollWidth,
    screen: innerWidth,
    folded: document.querySelectorAll("details:not([open])").length,
  };
}
