// Finds texts that a reader cannot read: those that lie over or under something, and those that are cut.
//
// `illegible(page)` scrolls through the page in steps of half a window. At each place it asks for every line of text
// in the window what the browser draws at the middle of the line, through shadow roots. A text that passes below a bar
// which sticks to the window is no problem, as long as the bar has a paper of its own and the text can be read at
// another place.

/** The problems of the page, each as a sentence. */
export async function illegible(page) {
  await page.evaluate(() => document.fonts.ready);
  return page.evaluate(inspect);
}

/** Runs in the page. */
async function inspect() {
  const SKIPPED =
    "script, style, template, noscript, option, title, desc, select, textarea";
  const problems = new Map();
  const parentOf = (node) =>
    node.assignedSlot ?? node.parentNode ?? node.host ?? null;
  const elementAbove = (node) => {
    const parent = parentOf(node);
    return parent instanceof ShadowRoot ? parent.host : parent;
  };
  const isAround = (outer, inner) => {
    for (let at = inner; at; at = elementAbove(at))
      if (at === outer) return true;
    return false;
  };
  const closest = (element, accept) => {
    for (let at = element; at instanceof Element; at = elementAbove(at))
      if (accept(at)) return at;
    return null;
  };
  const styles = new Map();
  const styleOf = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };
  const alpha = (colour) => {
    if (colour === "none" || colour === "transparent") return 0;
    const [, part] = /[,/]\s*([\d.]+)(%?)\)$/.exec(colour) ?? [];
    return /^rgba|\//.test(colour) && part !== undefined ? Number(part) : 1;
  };
  const describe = ({ parent, text }) => {
    const where = [];
    for (let at = parent; at instanceof Element; at = elementAbove(at)) {
      const name = at.localName;
      if (where.length === 0 || name.includes("-"))
        where.unshift(
          name + (at.classList.length > 0 ? `.${at.classList[0]}` : ""),
        );
    }
    return `“${text.slice(0, 48)}” (${where.join(" › ")})`;
  };
  const nameOf = (element) =>
    element.localName +
    (element.classList.length > 0 ? `.${element.classList[0]}` : "");
  const report = (problem) => {
    if (!problems.has(problem)) problems.set(problem, Math.round(scrollY));
  };

  // --- The texts ---------------------------------------------------------------------------------

  const roots = [document];
  for (const root of roots)
    for (const { shadowRoot } of root.querySelectorAll("*"))
      if (shadowRoot) roots.push(shadowRoot);

  /** Everything answers the pointer while this runs, so that nothing is passed over. */
  const answering = new CSSStyleSheet();
  answering.replaceSync("* { pointer-events: auto !important; }");
  for (const root of roots) root.adoptedStyleSheets.push(answering);

  const dialog = roots
    .map((root) => root.querySelector("dialog:modal"))
    .find((found) => found);
  const texts = [];
  for (const root of roots) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      const text = node.data.trim().replaceAll(/\s+/g, " ");
      if (text === "" || !parent || parent.closest(SKIPPED)) continue;
      if (dialog && !isAround(dialog, parent)) continue;
      // For screen readers only.
      if (closest(parent, (at) => styleOf(at).clipPath === "inset(50%)"))
        continue;
      texts.push({ node, parent, text, seen: new Set(), lines: 0 });
    }
  }
  const range = document.createRange();
  const linesOf = ({ node, parent }) => {
    const isShown = parent.checkVisibility({
      opacityProperty: true,
      visibilityProperty: true,
      contentVisibilityAuto: true,
    });
    if (!isShown) return [];
    range.selectNodeContents(node);
    return [...range.getClientRects()].filter(
      ({ width, height }) => width > 1 && height > 1,
    );
  };

  /** The boxes outside of which a text is not drawn, with whether a reader can scroll in them. */
  const boxesOf = (element) => {
    const boxes = [];
    let position = "static";
    for (let at = element; at instanceof Element; at = elementAbove(at)) {
      const style = styleOf(at);
      const clips =
        style.overflowX !== "visible" || style.overflowY !== "visible";
      // What is placed absolutely is cut only by what it is placed in.
      const applies = position !== "absolute" || style.position !== "static";
      if (
        clips &&
        applies &&
        at !== document.documentElement &&
        at !== document.body
      ) {
        const { left, top, right, bottom } = at.getBoundingClientRect();
        const scrolls = /auto|scroll/.test(style.overflowX + style.overflowY);
        boxes.push({ left, top, right, bottom, scrolls, element: at });
      }
      if (style.position === "fixed" || at === dialog) break;
      if (applies) position = style.position;
    }
    return boxes;
  };

  /** Whether an element draws something of its own at a place. */
  const draws = (element, x, y) => {
    if (
      !element.checkVisibility({
        opacityProperty: true,
        visibilityProperty: true,
      })
    )
      return false;
    const style = styleOf(element);
    if (alpha(style.backgroundColor) > 0 || style.backgroundImage !== "none")
      return true;
    if (element instanceof SVGGeometryElement)
      return (
        (alpha(style.fill) > 0 &&
          element.isPointInFill(placeIn(element, x, y))) ||
        (alpha(style.stroke) > 0 &&
          element.isPointInStroke(placeIn(element, x, y)))
      );
    if (
      /^(img|canvas|video|input|select|textarea|image)$/.test(element.localName)
    )
      return true;
    return [...element.childNodes].some((node) => {
      if (!(node instanceof Text) || node.data.trim() === "") return false;
      range.selectNodeContents(node);
      return [...range.getClientRects()].some(
        ({ left, right, top, bottom }) =>
          left <= x && x <= right && top <= y && y <= bottom,
      );
    });
  };
  const placeIn = (element, x, y) =>
    new DOMPoint(x, y).matrixTransform(element.getScreenCTM().inverse());
  const deepest = (x, y) => {
    let found = document.elementFromPoint(x, y);
    while (found?.shadowRoot) {
      const inner = found.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === found) break;
      found = inner;
    }
    return found;
  };
  /** What lies over a text at a place, if anything does. */
  const cover = (parent, x, y) => {
    const passed = [];
    let found = deepest(x, y);
    while (
      found &&
      !isAround(found, parent) &&
      !isAround(parent, found) &&
      !draws(found, x, y)
    ) {
      passed.push([
        found,
        found.style.getPropertyValue("pointer-events"),
        found.style.getPropertyPriority("pointer-events"),
      ]);
      found.style.setProperty("pointer-events", "none", "important");
      const next = deepest(x, y);
      found = next === found ? null : next;
    }
    for (const [element, value, priority] of passed)
      element.style.setProperty("pointer-events", value, priority);
    return found && !isAround(found, parent) && !isAround(parent, found)
      ? found
      : null;
  };
  const sticks = (element) =>
    /^(sticky|fixed)$/.test(styleOf(element).position);
  /** A bar that sticks to the window and has a paper of its own. */
  const isBar = (element) =>
    closest(element, sticks) !== null &&
    closest(
      element,
      (at) =>
        alpha(styleOf(at).backgroundColor) > 0.9 &&
        closest(at, sticks) !== null,
    ) !== null;

  // --- One place ---------------------------------------------------------------------------------

  /** Whether a text was outside of the window when it was last measured, and only scrolls. */
  const isElsewhere = ({ sticks, top, bottom }) =>
    sticks === false && (bottom < scrollY || top > scrollY + innerHeight);

  const look = () => {
    styles.clear();
    const seen = [];
    for (const text of texts) {
      if (isElsewhere(text)) continue;
      const lines = linesOf(text);
      text.lines = lines.length;
      text.top = Math.min(...lines.map(({ top }) => top + scrollY));
      text.bottom = Math.max(...lines.map(({ bottom }) => bottom + scrollY));
      text.sticks ??= closest(text.parent, sticks) !== null;
      if (lines.length === 0) continue;
      const boxes = boxesOf(text.parent);
      // For screen readers only.
      if (
        boxes.some(
          ({ left, right, top, bottom }) =>
            right - left <= 2 || bottom - top <= 2,
        )
      ) {
        text.lines = 0;
        continue;
      }
      text.scrolls = boxes.some(({ scrolls }) => scrolls);
      for (const [index, line] of lines.entries()) {
        const { left, right, top, bottom, width, height } = line;
        // A link above the page, which comes down when it has the focus.
        if (bottom + scrollY <= 0) text.seen.add(index);
        const y = (top + bottom) / 2;
        if (y < 1 || y > innerHeight - 1) continue;
        const scroller = boxes.find(
          (box) =>
            box.scrolls &&
            (y < box.top ||
              y > box.bottom ||
              left < box.left - 1 ||
              right > box.right + 1),
        );
        if (scroller) continue;
        const cutting = boxes.find(
          (box) =>
            !box.scrolls &&
            (left < box.left - 1.5 ||
              right > box.right + 1.5 ||
              top + height / 4 < box.top ||
              bottom - height / 4 > box.bottom),
        );
        if (cutting)
          report(`${describe(text)} is cut by ${nameOf(cutting.element)}`);
        else if (left < -1 || right > innerWidth + 1)
          report(`${describe(text)} is cut by the window`);
        const covering = cover(text.parent, left + width / 2, y);
        if (covering && !isBar(covering))
          report(`${describe(text)} lies under ${nameOf(covering)}`);
        if (covering) continue;
        text.seen.add(index);
        seen.push({
          text,
          left: left + 1,
          right: right - 1,
          top: top + height / 4,
          bottom: bottom - height / 4,
        });
      }
    }
    seen.sort((a, b) => a.top - b.top);
    for (const [index, line] of seen.entries()) {
      for (const other of seen.slice(index + 1)) {
        if (other.top >= line.bottom - 1) break;
        const overlap =
          Math.min(line.right, other.right) - Math.max(line.left, other.left);
        if (overlap > 1 && other.text !== line.text)
          report(
            `${describe(line.text)} and ${describe(other.text)} lie over each other`,
          );
      }
    }
  };

  for (const root of roots)
    for (const element of root.querySelectorAll("*"))
      if (sticks(element) && element.offsetHeight > innerHeight)
        report(`${nameOf(element)} sticks to the window, but is higher`);
  const nextFrame = () =>
    new Promise((resolve) => requestAnimationFrame(resolve));
  // What follows the width of the window follows it in the next frame, and draws in the one after it. Scrolling needs no
  // frame: the browser answers for what it would draw.
  await nextFrame();
  await nextFrame();
  const start = scrollY;
  const last = () => document.documentElement.scrollHeight - innerHeight;
  for (let top = 0; ; top += innerHeight / 2) {
    scrollTo({ top: Math.min(top, last()), behavior: "instant" });
    look();
    if (top >= last() || dialog) break;
  }
  for (const text of texts)
    if (
      !text.scrolls &&
      !dialog &&
      text.seen.size < text.lines &&
      ![...problems.keys()].some((problem) =>
        problem.startsWith(describe(text)),
      )
    )
      report(`${describe(text)} has lines that cannot be seen anywhere`);
  for (const root of roots)
    root.adoptedStyleSheets = root.adoptedStyleSheets.filter(
      (sheet) => sheet !== answering,
    );
  scrollTo({ top: start, behavior: "instant" });
  return [...problems].map(([problem, at]) => `${problem}, scrolled by ${at}`);
}
