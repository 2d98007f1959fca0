// Saves a chart of the page as a file of its own, with everything that the page's stylesheets and fonts
// give it.

import { failure } from "./failure.js";
import { FONTS } from "./fonts.js";

/** The properties that a stylesheet can give a shape, with their defaults. All of them are also attributes. */
const OF_ALL = { opacity: "1", "mix-blend-mode": "normal" };
const OF_SHAPES = {
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "vector-effect": "none",
  "paint-order": "normal",
  "fill-rule": "nonzero",
  "clip-rule": "nonzero",
  "marker-start": "none",
  "marker-end": "none",
  visibility: "visible",
};
const OF_TEXTS = {
  "font-family": "",
  "font-size": "",
  "font-weight": "400",
  "font-style": "normal",
  "letter-spacing": "normal",
  "text-anchor": "start",
  "dominant-baseline": "auto",
};

const SVG = "http://www.w3.org/2000/svg";

/** The pixels of a PNG for each pixel of the chart on the page. */
const PNG_SCALE = 3;

/** Saves a file on the reader's device. */
export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Saves a chart as `NAME.svg` or `NAME.png`, in the colours in which the page shows it. */
export async function saveChart(chart: SVGSVGElement, name: string, format: "svg" | "png"): Promise<void> {
  const text = await chartText(chart);
  const blob = new Blob([text], { type: "image/svg+xml" });
  saveFile(format === "svg" ? blob : await rasterise(blob, chart.getBoundingClientRect()), `${name}.${format}`);
}

/** Saves a chart that is drawn on a canvas as `NAME.png`. */
export async function saveCanvas(canvas: HTMLCanvasElement, name: string): Promise<void> {
  saveFile(await toPng(canvas), `${name}.png`);
}

/** The chart as the text of an SVG file that needs no stylesheet, no font and no other file. */
export async function chartText(chart: SVGSVGElement): Promise<string> {
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const originals = [chart, ...chart.querySelectorAll<SVGElement>("*")];
  const copies = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  const families = new Set<string>();
  const hidden: SVGElement[] = [];
  for (const [index, original] of originals.entries()) {
    const target = copies[index];
    if (!target) continue;
    const style = getComputedStyle(original);
    if (style.display === "none") hidden.push(target);
    else copyStyle(style, target);
    if (original instanceof SVGTextElement) families.add(style.fontFamily);
    if (original instanceof SVGImageElement) target.setAttribute("href", await embeddedImage(original));
  }
  for (const element of hidden) element.remove();

  const { width, height } = chart.getBoundingClientRect();
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.prepend(...(await fontsOf(families)), backgroundOf(chart, copy.viewBox.baseVal));
  return new XMLSerializer().serializeToString(copy);
}

/**
 * Writes the computed style of an element as attributes, and removes what only the page can read. Shapes
 * and texts get everything that they inherit, so groups need none of it.
 */
function copyStyle(style: CSSStyleDeclaration, target: SVGElement): void {
  for (const { name } of [...target.attributes]) {
    if (/^(class|style|part|tabindex|role|aria-|data-|on|fill|stroke|font|opacity)/.test(name)) {
      target.removeAttribute(name);
    }
  }
  const isText = target instanceof SVGTextContentElement;
  const isShape = isText || target instanceof SVGGeometryElement;
  for (const [name, initial] of Object.entries({ ...OF_ALL, ...(isShape && OF_SHAPES), ...(isText && OF_TEXTS) })) {
    const value = style.getPropertyValue(name);
    if (value === initial) target.removeAttribute(name);
    else if (value !== "") target.setAttribute(name, value);
  }
  for (const name of isShape ? ["fill", "stroke"] : []) {
    const { colour, opacity } = plainColour(style.getPropertyValue(name));
    const visible = opacity * Number(style.getPropertyValue(`${name}-opacity`) || 1);
    if (name === "fill" || colour !== "none") target.setAttribute(name, colour);
    if (visible < 1) target.setAttribute(`${name}-opacity`, visible.toFixed(3));
  }
  const { transform, transformOrigin } = style;
  if (transform !== "none" && !target.hasAttribute("transform")) {
    const [x = 0, y = 0] = transformOrigin.split(" ").map(parseFloat);
    target.setAttribute("transform", `translate(${x} ${y}) ${transform} translate(${-x} ${-y})`);
  }
}

let probe: CanvasRenderingContext2D | null = null;

/** A colour as `#rrggbb` and opacity, which all programs read. Gradients and `none` stay as they are. */
function plainColour(text: string): { colour: string; opacity: number } {
  if (text === "" || text === "none" || text.startsWith("url(")) return { colour: text || "none", opacity: 1 };
  probe ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!probe) return { colour: text, opacity: 1 };
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = text;
  probe.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0, alpha = 0] = probe.getImageData(0, 0, 1, 1).data;
  const hex = [red, green, blue].map((value) => value.toString(16).padStart(2, "0")).join("");
  return { colour: `#${hex}`, opacity: alpha / 255 };
}

/** The colour behind the chart. A transparent file would be hard to read on a page of the other theme. */
function colourBehind(chart: Element): string {
  for (let element: Element | null = chart; element; element = parentOf(element)) {
    const { colour, opacity } = plainColour(getComputedStyle(element).backgroundColor);
    if (opacity > 0.5) return colour;
  }
  return "#ffffff";
}

/** The element around another one, also out of a shadow root. */
function parentOf(element: Element): Element | null {
  const root = element.getRootNode();
  return element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}

function backgroundOf(chart: SVGSVGElement, { x, y, width, height }: DOMRect): SVGElement {
  const shape = document.createElementNS(SVG, "rect");
  const attributes = { x, y, width, height, fill: colourBehind(chart) };
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, String(value));
  return shape;
}

/** The page's own fonts among those that the texts use, inside a `style`. */
async function fontsOf(families: ReadonlySet<string>): Promise<Element[]> {
  const rules: string[] = [];
  for (const [family, address] of Object.entries(FONTS)) {
    if (![...families].some((list) => list.includes(family))) continue;
    const response = await fetch(address);
    if (!response.ok) continue;
    const data = await dataAddress(await response.blob());
    rules.push(`@font-face{font-family:"${family}";font-weight:200 900;src:url(${data}) format("woff2")}`);
  }
  if (rules.length === 0) return [];
  const style = document.createElementNS(SVG, "style");
  style.textContent = rules.join("");
  return [style];
}

function dataAddress(blob: Blob): Promise<string> {
  const reader = new FileReader();
  return new Promise((resolve, reject) => {
    reader.addEventListener("load", () => resolve(reader.result as string));
    reader.addEventListener("error", () => reject(failure("chart", "a font could not be read", "try again")));
    reader.readAsDataURL(blob);
  });
}

/** The picture of an `image` as a data address. */
async function embeddedImage(image: SVGImageElement): Promise<string> {
  const address = image.href.baseVal;
  if (address === "" || address.startsWith("data:")) return address;
  const canvas = await draw(address);
  return canvas.toDataURL();
}

async function draw(address: string, size?: { width: number; height: number }): Promise<HTMLCanvasElement> {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(size?.width ?? image.naturalWidth);
  canvas.height = Math.round(size?.height ?? image.naturalHeight);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

async function rasterise(svg: Blob, { width, height }: DOMRect): Promise<Blob> {
  const address = URL.createObjectURL(svg);
  try {
    return await toPng(await draw(address, { width: width * PNG_SCALE, height: height * PNG_SCALE }));
  } finally {
    URL.revokeObjectURL(address);
  }
}

function toPng(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const failed = failure("chart", "the browser could not write this chart as PNG", "save it as SVG");
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(failed)), "image/png");
  });
}
