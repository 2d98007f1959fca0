/** The message to the page around this one. `embed.html` shows how that page takes it. */
interface HeightMessage {
  akin: "height";
  /** In CSS pixels. */
  height: number;
}

/** Tells the page around this one how tall it is, as a frame does not grow by itself. */
export function tellHeight(): void {
  if (window.parent === window) return;
  const resized = new ResizeObserver(() => {
    const message: HeightMessage = { akin: "height", height: Math.ceil(document.body.getBoundingClientRect().height) };
    window.parent.postMessage(message, "*");
  });
  resized.observe(document.body);
}
