// What of the map is in view and in focus, and how pointers, the wheel and keys change it.

import { bounds, disk, isInside, plane, zoomed, type Points, type Space, type Viewport } from "./geometry.js";

/** What the reader moves over, and what a move can mean. */
export interface Surface {
  shown(): {
    readonly points: Points | null;
    /** The places of all points on the screen, as they were last painted. */
    readonly screen: Float32Array;
    /** 1 for every point that keys pass over and pointers avoid, because it does not belong to the choice. */
    readonly faded: Uint8Array;
  };
  /** Paints the map again. */
  paint(): void;
  /** The focus or the lasso has changed. */
  changed(): void;
  /** Chooses a point: makes its item the query, or chooses its class. */
  select(point: number): void;
  /** Chooses the points inside the lasso. */
  encircle(points: readonly number[]): void;
  /** Takes the choice back. Returns whether there was one. */
  release(): boolean;
  /** Chooses the proxy at a place on the screen. Returns whether there is one. */
  chooseProxy(place: readonly [number, number], within: number): boolean;
}

/** A pointer that moved less than this has clicked. */
const CLICK_PIXELS = 5;
const PAN_PIXELS = 60;
const ZOOM_STEP = 1.5;
/** How near a pointer must be to a point or a proxy, in pixels: a finger covers more than a mouse. */
const REACH = { touch: { point: 26, proxy: 18 }, mouse: { point: 14, proxy: 8 } } as const;

export class Navigation {
  view: Viewport = { width: 1, height: 1, zoom: 1, centre: [0, 0] };
  space: Space = disk;
  /** The line around points while it is drawn. */
  lasso: [number, number][] = [];
  /** Whether the last move was one of the keyboard. */
  keyboard = false;
  private focus: number | null = null;
  private isLasso = false;
  private readonly pointers = new Map<number, [number, number]>();
  private dragged = 0;
  private grip: [number, number] | null = null;

  constructor(private readonly map: Surface) {}

  /** The point in focus. */
  get focused(): number | null {
    return this.focus;
  }

  set focused(point: number | null) {
    if (point === this.focus) return;
    this.focus = point;
    this.map.changed();
  }

  /** Whether the next drag draws a lasso. */
  get lassoOn(): boolean {
    return this.isLasso;
  }

  set lassoOn(on: boolean) {
    this.isLasso = on;
    this.map.changed();
  }

  // --- The view ----------------------------------------------------------------------------------

  /** Shows all of another map. */
  open(points: Points, isDisk: boolean): void {
    const { centre, radius } = bounds(points);
    this.space = isDisk ? disk : plane(radius);
    this.view = { ...this.view, zoom: 1, centre: isDisk ? [0, 0] : centre };
    this.focused = null;
  }

  resize(width: number, height: number): void {
    this.move({ ...this.view, width: Math.max(1, width), height: Math.max(1, height) });
  }

  private move(view: Viewport): void {
    this.view = view;
    this.map.paint();
  }

  zoomIn(): void {
    this.zoom(ZOOM_STEP);
  }

  zoomOut(): void {
    this.zoom(1 / ZOOM_STEP);
  }

  private zoom(factor: number): void {
    this.move(zoomed(this.space, this.view, factor, this.view.width / 2, this.view.height / 2));
  }

  /** Shows the whole map. */
  fit(): void {
    const { points } = this.map.shown();
    const centre: [number, number] = this.space === disk || !points ? [0, 0] : bounds(points).centre;
    this.move({ ...this.view, zoom: 1, centre });
  }

  private pan(dx: number, dy: number): void {
    const { width, height } = this.view;
    const point = this.space.locate(width / 2, height / 2, this.view);
    this.move(this.space.moved(point, width / 2 + dx, height / 2 + dy, this.view));
  }

  private placeOf(event: PointerEvent | WheelEvent): [number, number] {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // --- Pointers and the wheel --------------------------------------------------------------------

  readonly onPointerDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    const place = this.placeOf(event);
    this.pointers.set(event.pointerId, place);
    this.dragged = this.pointers.size > 1 ? CLICK_PIXELS : 0;
    this.keyboard = false;
    if (this.lassoOn && this.pointers.size === 1) this.lasso = [place];
    else this.grip = this.space.locate(...place, this.view);
  };

  readonly onPointerMove = (event: PointerEvent): void => {
    const place = this.placeOf(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.focusNear(place, REACH.mouse.point);
      return;
    }
    this.dragged += Math.hypot(place[0] - before[0], place[1] - before[1]);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, place);
    if (other) {
      const apart = (a: [number, number], b: [number, number]) => Math.hypot(a[0] - b[0], a[1] - b[1]);
      const factor = apart(place, other) / Math.max(1, apart(before, other));
      const middle: [number, number] = [(place[0] + other[0]) / 2, (place[1] + other[1]) / 2];
      this.lasso = [];
      this.move(zoomed(this.space, this.view, factor, ...middle));
      this.pan((place[0] - before[0]) / 2, (place[1] - before[1]) / 2);
    } else if (this.lasso.length > 0) {
      this.lasso.push(place);
      this.map.paint();
    } else if (this.grip && this.dragged >= CLICK_PIXELS) {
      this.move(this.space.moved(this.grip, ...place, this.view));
    }
  };

  readonly onPointerUp = (event: PointerEvent): void => {
    const place = this.placeOf(event);
    if (!this.pointers.delete(event.pointerId) || event.type === "pointercancel") {
      this.lasso = [];
      return;
    }
    const isMouse = event.pointerType === "mouse";
    const reach = REACH[isMouse ? "mouse" : "touch"];
    if (this.dragged < CLICK_PIXELS) {
      this.lasso = [];
      if (this.map.chooseProxy(place, reach.proxy)) {
        this.grip = null;
        return;
      }
      const before = this.focused;
      const point = this.focusNear(place, reach.point);
      // A first tap shows the card, a second one chooses the point.
      if (point !== null && (isMouse || point === before)) this.map.select(point);
    } else if (this.lasso.length > 2) {
      this.finishLasso();
    }
    this.grip = null;
    const [rest] = this.pointers.values();
    if (rest) this.grip = this.space.locate(...rest, this.view);
    this.map.paint();
  };

  readonly onPointerLeave = (event: PointerEvent): void => {
    if (event.pointerType === "mouse" && this.pointers.size === 0 && !this.keyboard) this.focused = null;
  };

  readonly onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    this.move(zoomed(this.space, this.view, Math.exp(-pixels * 0.0016), ...this.placeOf(event)));
  };

  // --- Keys --------------------------------------------------------------------------------------

  readonly onKey = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] as
      [number, number] | undefined;
    this.keyboard = true;
    if (direction && event.shiftKey) this.pan(-direction[0] * PAN_PIXELS, -direction[1] * PAN_PIXELS);
    else if (direction) this.step(...direction);
    else if (event.key === "+" || event.key === "=") this.zoomIn();
    else if (event.key === "-") this.zoomOut();
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" && this.focused !== null) this.map.select(this.focused);
    else if (event.key === "Escape") {
      const hadFocus = this.focused !== null;
      this.focused = null;
      if (!this.map.release() && !hadFocus) return;
    } else return;
    event.preventDefault();
  };

  /** Moves the focus to the nearest point in a direction, and the map so that the point can be seen. */
  private step(dx: number, dy: number): void {
    const { screen, faded } = this.map.shown();
    const { width, height } = this.view;
    const [x, y] =
      this.focused === null
        ? [width / 2, height / 2]
        : [screen[2 * this.focused] ?? 0, screen[2 * this.focused + 1] ?? 0];
    let [best, cost] = [this.focused, Infinity];
    for (let point = 0; point < faded.length; point++) {
      if (faded[point] === 1 || point === this.focused) continue;
      const [ax, ay] = [(screen[2 * point] ?? 0) - x, (screen[2 * point + 1] ?? 0) - y];
      const along = ax * dx + ay * dy;
      const across = Math.abs(ax * dy - ay * dx);
      if (along <= 0.5 || across > along * 1.5) continue;
      if (along + 2 * across < cost) [best, cost] = [point, along + 2 * across];
    }
    this.focused = best;
    if (best === null) return;
    const [px, py] = [screen[2 * best] ?? 0, screen[2 * best + 1] ?? 0];
    const margin = 40;
    const [mx, my] = [Math.max(margin, Math.min(width - margin, px)), Math.max(margin, Math.min(height - margin, py))];
    if (mx !== px || my !== py) this.pan(mx - px, my - py);
  }

  /** Puts the focus on the point next to a place on the screen, if one is near enough. */
  private focusNear([x, y]: [number, number], within: number): number | null {
    const { screen, faded } = this.map.shown();
    let [best, distance] = [null as number | null, within];
    for (let point = 0; point < faded.length; point++) {
      // Chosen points win over faded ones that lie nearer.
      const d =
        Math.hypot((screen[2 * point] ?? 0) - x, (screen[2 * point + 1] ?? 0) - y) + (faded[point] === 1 ? 8 : 0);
      if (d < distance) [best, distance] = [point, d];
    }
    this.focused = best;
    return best;
  }

  private finishLasso(): void {
    const { screen, faded } = this.map.shown();
    const points: number[] = [];
    for (let point = 0; point < faded.length; point++) {
      if (isInside(screen[2 * point] ?? 0, screen[2 * point + 1] ?? 0, this.lasso)) points.push(point);
    }
    this.lasso = [];
    this.lassoOn = false;
    this.map.encircle(points);
  }
}
