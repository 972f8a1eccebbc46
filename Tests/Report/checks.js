// What a report must be for those who read it: scripts/check report puts this at the end of a copy of the page and reads the
// element that it leaves behind. Contrast as in WCAG 2.2: 4.5 for text, 3 for what is drawn.
(() => {
  const problems = [];
  const complain = (what, node) =>
    problems.push(what + (node ? `: <${node.tagName.toLowerCase()}> ${(node.textContent || "").trim().slice(0, 60)}` : ""));
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  const parse = (text) => {
    const parts = (text.match(/rgba?\(([^)]*)\)/) || [])[1];
    if (!parts) return null;
    const [red, green, blue, alpha = 1] = parts.split(/[ ,/]+/).map(Number);
    return { red, green, blue, alpha };
  };
  const over = (top, below) => {
    const mix = (name) => top[name] * top.alpha + below[name] * (1 - top.alpha);
    return { red: mix("red"), green: mix("green"), blue: mix("blue"), alpha: 1 };
  };
  const background = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour && colour.alpha > 0) layers.push(colour);
      if (colour && colour.alpha === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), { red: 255, green: 255, blue: 255, alpha: 1 });
  };
  const luminance = (colour) => {
    const [red, green, blue] = [colour.red, colour.green, colour.blue].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  let texts = 0, lowest = 21;
  for (const node of all("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || node.closest("script, style, title") || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const isDrawn = node instanceof SVGElement;
    const below = background(node);
    const colour = parse(isDrawn ? style.fill : style.color);
    if (!colour) { complain("text has no colour", node); continue; }
    const ratio = contrast(over(colour, below), below);
    texts += 1;
    lowest = Math.min(lowest, ratio);
    if (ratio < 4.5) complain(`contrast of ${ratio.toFixed(2)}, below 4.5`, node);
    // What is drawn shrinks with its picture.
    const scale = isDrawn ? node.ownerSVGElement.getBoundingClientRect().width / node.ownerSVGElement.viewBox.baseVal.width : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (size < 10) complain(`text of ${size.toFixed(1)} px, below 10`, node);
  }
  if (texts < 20) complain(`the page has ${texts} texts only`);

  const marks = all("svg polyline, svg .mark path, svg circle, svg polygon, td.bar i");
  for (const node of marks) {
    const style = getComputedStyle(node);
    const isLine = node.classList.contains("line");
    const colour = parse(node.tagName === "I" ? style.backgroundColor : isLine ? style.stroke : style.fill);
    const below = background(node.parentElement);
    if (!colour || contrast(over(colour, below), below) < 3) complain("something drawn is hard to see", node);
    for (const name of ["points", "d", "cx", "cy"]) {
      if (/nan|inf/i.test(node.getAttribute(name) || "")) complain(`a coordinate is no number: ${node.getAttribute(name)}`, node);
    }
  }

  if (!document.documentElement.lang) complain("the page has no language");
  if (!document.title) complain("the page has no title");
  if (all("h1").length !== 1) complain(`the page has ${all("h1").length} headings of the first level`);
  let level = 0;
  for (const heading of all("h1, h2, h3, h4")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) complain(`a heading of level ${own} follows one of level ${level}`, heading);
    level = own;
  }
  for (const heading of all("h2")) {
    const next = heading.nextElementSibling;
    if (!next || next.tagName === "H2" || !next.textContent.trim()) complain("nothing stands under a heading", heading);
  }

  const names = new Set();
  const charts = all("svg[role=img]");
  for (const chart of charts) {
    const name = chart.getAttribute("aria-label") || "";
    if (!name) complain("a chart has no name", chart);
    if (names.has(name)) complain(`two charts are called ${name}`);
    names.add(name);
    const axes = all("text.axis", chart);
    if (axes.length < 2) complain(`the chart ${name} names ${axes.length} axes`);
    if (!axes.some((axis) => /kbit\/s|ms|%|bytes|queue/.test(axis.textContent))) complain(`no axis of ${name} has a unit`);
    const boxes = all("text", chart).map((node) => ({ node, box: node.getBoundingClientRect() })).filter(({ box }) => box.width);
    boxes.forEach(({ node, box }, index) => {
      for (const other of boxes.slice(index + 1)) {
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (wide > 1 && high > 2) complain(`"${other.node.textContent}" is drawn over`, node);
      }
      if (!node.closest(".scroll") && (box.right > document.documentElement.clientWidth + 1 || box.left < -1)) complain("a text leaves the page", node);
    });
  }
  for (const picture of all("svg:not([role=img])")) {
    if (picture.getAttribute("aria-hidden") !== "true") complain("a picture has neither a name nor is it hidden", picture);
  }
  for (const figure of all("figure")) if (!figure.querySelector("figcaption")) complain("a figure has no caption", figure);

  for (const table of all("table")) {
    for (const cell of all("th", table)) {
      if (!cell.getAttribute("scope")) complain("a heading of a table has no scope", cell);
      if (!cell.textContent.trim() && !cell.getAttribute("aria-label")) complain("a heading of a table is empty", table);
    }
    if (!table.querySelector("tbody th, caption") && !table.closest("figure")) complain("a table's rows have no headings", table);
  }
  for (const box of all(".scroll")) {
    if (box.scrollWidth > box.clientWidth && (box.tabIndex < 0 || !box.getAttribute("aria-label")))
      complain("what scrolls cannot be reached by keyboard, or has no name", box);
  }
  const [wide, room] = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  if (wide > room) complain(`the page is ${wide} px wide in ${room}`);

  const answer = document.createElement("pre");
  answer.id = "checked";
  answer.textContent = JSON.stringify({
    width: room, charts: charts.length, marks: marks.length, texts, lowest: Number(lowest.toFixed(2)), tables: all("table").length,
    title: document.title, words: document.body.innerText, problems,
  });
  // A narrow page is looked at in a frame: Chromium's windows have 500 px at least.
  window.parent.document.body.append(answer);
})();
