// Moving the rows of a list with the pointer.

export interface Dragging {
  /** The row is now over the place `to`. */
  over(to: number): void;
  /** The reader let the row fall, or gave up. */
  end(kept: boolean): void;
}

/** How far the pointer moves before a drag begins, in pixels: a click stays a click. */
const THRESHOLD = 4;
/** Near its edges a list scrolls by itself: this close, in pixels, and this fast, in pixels per frame. */
const EDGE = 36;
const SPEED = 9;

/**
 * Follows the pointer that went down on `row`, one of the rows of `list`, until it goes up. `start` is
 * called when the pointer has moved far enough.
 */
export function followPointer(event: PointerEvent, list: HTMLElement, row: HTMLElement, start: () => Dragging): void {
  const height = row.offsetHeight;
  const count = list.children.length;
  const scroller = list.closest<HTMLElement>(".scroller") ?? list;
  const grabbedAt = event.clientY - row.getBoundingClientRect().top;
  const { clientX: startX, clientY: startY, pointerId } = event;
  let dragging: Dragging | null = null;
  let y = startY;
  let frame = 0;
  const stop = new AbortController();

  const follow = () => {
    const top = y - grabbedAt - list.getBoundingClientRect().top;
    const to = Math.max(0, Math.min(count - 1, Math.round(top / height)));
    dragging?.over(to);
    const offset = Math.max(-height / 2, Math.min((count - 0.5) * height, top)) - to * height;
    row.style.setProperty("--dragged", `${offset}px`);
  };
  const scroll = () => {
    const { top, bottom } = scroller.getBoundingClientRect();
    const by = y < top + EDGE ? -SPEED : y > bottom - EDGE ? SPEED : 0;
    if (by !== 0 && scroller.scrollHeight > scroller.clientHeight) {
      scroller.scrollTop += by;
      follow();
    }
    frame = requestAnimationFrame(scroll);
  };
  const finish = (kept: boolean) => {
    stop.abort();
    cancelAnimationFrame(frame);
    row.style.removeProperty("--dragged");
    dragging?.end(kept);
  };

  const { signal } = stop;
  const of = (listener: (event: PointerEvent) => void) => (event: PointerEvent) =>
    event.pointerId === pointerId && listener(event);
  window.addEventListener(
    "pointermove",
    of((event) => {
      y = event.clientY;
      if (!dragging) {
        if (Math.hypot(event.clientX - startX, y - startY) < THRESHOLD) return;
        dragging = start();
        frame = requestAnimationFrame(scroll);
      }
      event.preventDefault();
      follow();
    }),
    { signal, passive: false },
  );
  window.addEventListener(
    "pointerup",
    // The pointer may have moved since the last `pointermove`, because the browser sends at most one a frame.
    of((event) => {
      y = event.clientY;
      if (dragging) follow();
      finish(true);
    }),
    { signal },
  );
  window.addEventListener(
    "pointercancel",
    of(() => finish(false)),
    { signal },
  );
  window.addEventListener("blur", () => finish(false), { signal });
  window.addEventListener("keydown", (event) => event.key === "Escape" && finish(false), { signal, capture: true });
}
