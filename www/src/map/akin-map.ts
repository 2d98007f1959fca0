// <akin-map>: the gallery as a map. Every point is an item; near points are alike.
//
// In a page of somebody else: `<akin-map bundle="bundle/"></akin-map>`. The page's own views give it a
// `source` instead.
//
// What tests may rely on:
//   [data-testid=map]        the canvas, with data-points, data-visible, data-pictures="true | false",
//                            data-drawing="webgpu | canvas", data-drawn="true | false"
//   [data-testid=map-status] what screen readers read: the item in focus
//   [data-testid=tree]       role=tree; treeitems with data-level, data-class, data-items
//   [data-testid=chosen]     the grid of chosen items, with data-count
//   [data-testid=show-proxies], [data-testid=proxies]   see proxy-panel.ts; the overlay is canvas.proxies[data-proxies]
//   [data-testid=nearest]    the query's nearest items: li[data-item][data-shared-level]
//   the events akin-query ({ item }) and akin-change, when the address should follow

import { html, nothing, type PropertyValues } from "lit";
import { property, query as element, state } from "lit/decorators.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { saveCanvasButton } from "../elements/save-chart.js";
import { ShadowElement, sheet } from "../elements/shadow.js";
import { sentence, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation, sharedLevel } from "../kinship.js";
import type { Result, Running } from "../protocol.js";
import { isStopped, session } from "../session.js";
import { vars } from "../vars.js";
import "../elements/thumb.js";
import thumb from "../elements/thumb.css";
import styles from "./akin-map.css";
import { GallerySource, type QueryScores } from "./gallery-source.js";
import { bounds, disk, isInside, plane, zoomed, type Points, type Space, type Viewport } from "./geometry.js";
import { GpuDrawing, isDrawnByGpu } from "./gpu-drawing.js";
import { classMark, colourReader, kinMark, markIcon, type Mark } from "./marks.js";
import { Painter, Pictures } from "./painter.js";
import { Proxies } from "./proxies.js";
import { ProxyLayer } from "./proxy-layer.js";
import { proxyControl, proxyPanel } from "./proxy-panel.js";
import type { Inks, Label, Scene } from "./scene.js";
import { ClassTree, meanOfClass, type ClassNode } from "./tree.js";

/** What is chosen: a class, or the items inside a lasso. */
export type Choice = { kind: "class"; node: ClassNode } | { kind: "lasso"; items: readonly number[] };

/** The number of the query's nearest items that are linked and listed. */
const NEAREST = 12;
/** The number of chosen items shown at first. */
const CHOSEN = 48;
/** The most class names on the map. */
const MOST_LABELS = 60;
/** The most classes that the tree opens for by itself. */
const MOST_OPEN = 30;
/** A pointer that moved less than this has clicked. */
const CLICK_PIXELS = 5;
const PAN_PIXELS = 60;
const ZOOM_STEP = 1.5;

export class AkinMap extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(thumb), sheet(styles)];

  /** The folder of a bundle, where no source is given. */
  @property() accessor bundle = "";
  @property({ attribute: false }) accessor source: GallerySource | null = null;
  @property({ attribute: false }) accessor encoder = 0;
  /** The name of the map; the encoder's first map if it has none of this name. */
  @property() accessor map = "";
  /** What colours show: a level, 1 … L, or 0 for the kinship to the query. */
  @property({ type: Number }) accessor colour = 1;
  @property({ attribute: false }) accessor query: number | null = null;
  @property({ attribute: false }) accessor choice: Choice | null = null;

  /** The learned ancestors: `""` hides them, `"all"` shows them, a number from 0 also chooses one. */
  @property() accessor proxies = "";

  @state() private accessor tree: ClassTree | null = null;
  @state() private accessor ancestors: Proxies | null = null;
  @state() private accessor scores: QueryScores | null = null;
  @state() private accessor points: Points | null = null;
  @state() private accessor problem: Failure | null = null;
  @state() private accessor nearest: readonly Result[] = [];
  @state() private accessor ranking = false;
  @state() private accessor focused: number | null = null;
  @state() private accessor lassoOn = false;
  @state() private accessor open = new Set<ClassNode>();
  @state() private accessor treeStop: ClassNode | null = null;
  @state() private accessor shown = CHOSEN;
  @state() private accessor onlyChosen = false;

  @element("canvas") private accessor canvas!: HTMLCanvasElement | null;
  @element("canvas.proxies") private accessor overlay!: HTMLCanvasElement | null;
  @element(".card") private accessor card!: HTMLElement | null;

  private view: Viewport = { width: 1, height: 1, zoom: 1, centre: [0, 0] };
  private space: Space = disk;
  private painter: Painter | null = null;
  private proxyLayer: ProxyLayer | null = null;
  private pictures: Pictures | null = null;
  /** The engine that draws the map, as the session knew it when it began. */
  private drawer: Running | null = null;
  private gpuHasFailed = false;
  private inks: Inks | null = null;
  private marks: Mark[] = [];
  private markOf = new Uint16Array(0);
  private faded = new Uint8Array(0);
  private labels: Label[] = [];
  private lasso: [number, number][] = [];
  private frame = 0;
  private loaded = "";
  private ranked = "";
  private readonly pointers = new Map<number, [number, number]>();
  private dragged = 0;
  private grip: [number, number] | null = null;
  private keyboard = false;
  private readonly resized = new ResizeObserver(() => this.resize());
  private readonly themed = new MutationObserver(() => this.recolour());
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly onScheme = () => this.recolour();
  /** Asks a new engine again. */
  private readonly onLost = () => {
    this.ranked = "";
    this.drawWithoutGpu();
    this.requestUpdate();
  };
  private readonly onEngine = () => this.followEngine();

  override connectedCallback(): void {
    super.connectedCallback();
    this.themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.scheme.addEventListener("change", this.onScheme);
    session.addEventListener("lost", this.onLost);
    session.addEventListener("change", this.onEngine);
    if (!this.source && this.bundle) void this.openBundle();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.themed.disconnect();
    this.resized.disconnect();
    this.scheme.removeEventListener("change", this.onScheme);
    session.removeEventListener("lost", this.onLost);
    session.removeEventListener("change", this.onEngine);
    this.closeGpu();
    cancelAnimationFrame(this.frame);
  }

  // --- Data ------------------------------------------------------------------------------------

  private async openBundle(): Promise<void> {
    try {
      this.source = await GallerySource.open(session, { bundle: this.bundle, backend: null });
    } catch (error) {
      this.problem = toFailure(error);
    }
  }

  private entry() {
    return this.source?.encoders[this.encoder] ?? null;
  }

  private mapEntry() {
    const maps = this.entry()?.maps ?? [];
    return maps.find(({ name }) => name === this.map) ?? maps[0] ?? null;
  }

  private async load(source: GallerySource): Promise<void> {
    const map = this.mapEntry();
    const key = `${this.encoder}/${map?.coordinates}`;
    if (key === this.loaded) return;
    this.loaded = key;
    this.problem = null;
    try {
      const scores = await source.queryScores(this.encoder);
      const points = map && (await source.numbers(map.coordinates));
      const ancestors = map?.proxies ? await Proxies.load(source, map.proxies) : null;
      if (key !== this.loaded) return;
      this.ancestors = ancestors;
      this.scores = scores;
      this.points = points;
      if (!points) return;
      if (map.geometry === "poincare_disk") {
        this.space = disk;
        this.view = { ...this.view, zoom: 1, centre: [0, 0] };
      } else {
        const { centre, radius } = bounds(points);
        this.space = plane(radius);
        this.view = { ...this.view, zoom: 1, centre };
      }
      this.focused = null;
      this.dress();
    } catch (error) {
      if (key === this.loaded) this.problem = toFailure(error);
    }
  }

  /** Ranks the gallery by the query, for the links to its nearest items. */
  private async rank(source: GallerySource): Promise<void> {
    const key = `${this.encoder}/${this.query}`;
    if (key === this.ranked) return;
    this.ranked = key;
    this.nearest = [];
    if (this.query === null) return;
    this.ranking = true;
    try {
      const { results } = await source.rank(this.encoder, this.query, source.collection.manifest.gallery.count);
      if (key === this.ranked) this.nearest = results;
    } catch (error) {
      if (key !== this.ranked) return;
      const failure = toFailure(error);
      if (isStopped(failure)) this.ranked = "";
      else this.problem = failure;
    } finally {
      if (key === this.ranked) this.ranking = false;
    }
  }

  /** The level of the colours: kinship needs a query. */
  private colourLevel(): number {
    const depth = this.source?.collection.depth ?? 1;
    return this.colour === 0 && this.query === null ? 1 : Math.min(this.colour, depth);
  }

  /** Chooses mark and opacity of every point. */
  private dress(): void {
    const { source, tree, points } = this;
    if (!source || !tree || !points) return;
    const { collection } = source;
    const count = points.length / 2;
    const level = this.colourLevel();
    this.markOf = new Uint16Array(count);
    if (level === 0) {
      const own = collection.labels(this.query ?? 0);
      for (let item = 0; item < count; item++) this.markOf[item] = sharedLevel(own, collection.labels(item));
    } else {
      for (let item = 0; item < count; item++) this.markOf[item] = tree.classOf(item, level)?.place ?? 0;
    }
    const chosen = this.chosenItems();
    this.faded = new Uint8Array(count);
    if (chosen) {
      this.faded.fill(1);
      for (const item of chosen) this.faded[item] = 0;
    }
    const named = level === 0 ? 1 : level;
    const nodes = tree.levels[named - 1] ?? [];
    const labelled = nodes.length <= MOST_LABELS ? nodes : (tree.levels[0] ?? []);
    this.labels = labelled
      .filter(({ items }) => items.length > 0)
      .toSorted((a, b) => b.items.length - a.items.length)
      .map((node) => ({
        text: node.name,
        at: this.middle(node.items, points),
        mark: level === node.level ? node.place : -1,
      }));
    this.recolour();
  }

  /** The median of the points of items in both directions: far-off items do not move it. */
  private middle(items: readonly number[], points: Points): [number, number] {
    const median = (offset: number) => {
      const values = items.map((item) => points[2 * item + offset] ?? 0).sort((a, b) => a - b);
      return values[Math.floor(values.length / 2)] ?? 0;
    };
    return [median(0), median(1)];
  }

  private chosenItems(): readonly number[] | null {
    const { choice } = this;
    return choice && (choice.kind === "class" ? choice.node.items : choice.items);
  }

  /** Opens the tree as far as the level of the colours, whose marks then stand in it, unless that is long. */
  private openTree(): void {
    const level = this.colourLevel();
    if (!this.tree || (this.tree.levels[level - 1]?.length ?? 0) > MOST_OPEN) return;
    this.open = new Set([...this.open, ...this.tree.levels.slice(0, Math.max(0, level - 1)).flat()]);
  }

  private recolour(): void {
    const { source, tree, renderRoot } = this;
    if (!source || !tree || !(renderRoot instanceof ShadowRoot)) return;
    const level = this.colourLevel();
    const { depth } = source.collection;
    const marks =
      level === 0
        ? Array.from({ length: depth + 1 }, (_, shared) => kinMark(shared, depth))
        : (tree.levels[level - 1] ?? []).map(({ place }) => classMark(place));
    const reader = colourReader(renderRoot);
    this.marks = marks.map((mark) => ({ ...mark, colour: reader.read(mark.colour) }));
    this.inks = {
      paper: reader.read("var(--paper)"),
      ink: reader.read("var(--ink)"),
      soft: reader.read("var(--ink-soft)"),
      line: reader.read("var(--line)"),
      accent: reader.read("var(--accent)"),
    };
    reader.done();
    this.schedule();
  }

  // --- Drawing ---------------------------------------------------------------------------------

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("source") && this.source) {
      if (this.tree?.collection !== this.source.collection) this.tree = new ClassTree(this.source.collection);
      this.treeStop = this.tree.roots[0] ?? null;
      this.loaded = "";
      this.ranked = "";
      this.closeGpu();
      this.gpuHasFailed = false;
    }
    if (this.source) {
      void this.load(this.source);
      void this.rank(this.source);
    }
    if (changed.has("source") || changed.has("colour")) this.openTree();
    if (changed.has("choice")) this.shown = CHOSEN;
  }

  protected override updated(changed: PropertyValues<this>): void {
    const { canvas } = this;
    if (canvas && this.painter === null) {
      this.painter = new Painter(canvas);
      this.resized.observe(canvas);
      this.resize();
    }
    if (!this.overlay) this.proxyLayer = null;
    if (!canvas && this.painter) {
      this.resized.disconnect();
      this.closeGpu();
      this.painter = null;
    }
    this.followEngine();
    if (this.source && !this.pictures)
      this.pictures = new Pictures(
        (index) => this.source!.sprites.sheet(index),
        () => this.schedule(),
      );
    if ((["colour", "query", "choice", "source"] as const).some((name) => changed.has(name))) this.dress();
    this.schedule();
  }

  private resize(): void {
    const { canvas } = this;
    if (!canvas) return;
    this.view = { ...this.view, width: Math.max(1, canvas.clientWidth), height: Math.max(1, canvas.clientHeight) };
    this.schedule();
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  /** Lets the engine's graphics device draw, where it has one. */
  private followEngine(): void {
    const { running } = session;
    if (this.drawer && running !== this.drawer) this.drawWithoutGpu();
    const { painter, source, canvas } = this;
    const stage = canvas?.parentElement;
    if (!painter || !source || !stage || this.drawer || this.gpuHasFailed) return;
    if (!isDrawnByGpu(running, source.wantsGpu)) return;
    this.drawer = running;
    painter.gpu = GpuDrawing.open(stage, source, {
      drawn: () => (canvas.dataset["drawn"] = String(painter.gpu?.isDrawing !== true)),
      changed: () => this.schedule(),
      failed: () => this.drawWithoutGpu(),
    });
    this.schedule();
  }

  /** Draws this gallery with the 2-D canvas from now on: the same frame may lose the next device, too. */
  private drawWithoutGpu(): void {
    if (!this.drawer) return;
    this.closeGpu();
    this.gpuHasFailed = true;
    this.schedule();
  }

  private closeGpu(): void {
    this.drawer = null;
    if (!this.painter?.gpu) return;
    this.painter.gpu.close();
    this.painter.gpu = null;
  }

  private scene(): Scene | null {
    const { points, inks, source } = this;
    if (!points || !inks || !source || this.markOf.length * 2 !== points.length) return null;
    const { tile } = source.collection.manifest.thumbnails;
    return {
      points,
      space: this.space,
      isDisk: this.space === disk,
      marks: this.marks,
      markOf: this.markOf,
      faded: this.faded,
      query: this.queryPlace(points, points.length / 2),
      nearest: this.nearest.slice(0, NEAREST).map(({ item }) => item),
      focus: this.focused,
      labels: this.labels,
      lasso: this.lasso,
      picture: (item) => {
        const at = source.sprites.place(item);
        const image = this.pictures?.get(at.sheet);
        return image ? { image, x: at.column * tile, y: at.row * tile, side: tile } : null;
      },
      inks,
      font: `600 12px ${getComputedStyle(this).getPropertyValue("--sans")}`,
    };
  }

  private paint(): void {
    const { painter, canvas } = this;
    const scene = this.scene();
    if (!painter || !canvas || !scene) return;
    const { visible, pictures } = painter.paint(scene, this.view, devicePixelRatio);
    canvas.dataset["points"] = String(scene.points.length / 2);
    canvas.dataset["visible"] = String(visible);
    canvas.dataset["pictures"] = String(pictures);
    canvas.dataset["drawing"] = painter.gpu ? "webgpu" : "canvas";
    canvas.dataset["drawn"] = String(painter.gpu?.isDrawing !== true);
    this.paintProxies(scene);
    this.placeCard();
  }

  /** The map as one picture, also where other canvases have a part of it. */
  private wholeCanvas(): HTMLCanvasElement | null {
    const scene = this.scene();
    const { canvas, overlay } = this;
    if (!scene || !(this.painter?.gpu || overlay)) return canvas;
    const whole = document.createElement("canvas");
    new Painter(whole).paint(scene, this.view, devicePixelRatio);
    if (overlay) {
      const context = whole.getContext("2d");
      context?.resetTransform();
      context?.drawImage(overlay, 0, 0);
    }
    return whole;
  }

  private paintProxies({ points, space, isDisk, inks }: Scene): void {
    const { ancestors, overlay } = this;
    if (!ancestors || !overlay) return;
    this.proxyLayer ??= new ProxyLayer(overlay);
    const item = this.focused ?? this.query;
    this.proxyLayer.draw(
      { proxies: ancestors, points, space, isDisk, chosen: this.chosenProxy(), item, inks },
      this.view,
      devicePixelRatio,
    );
    overlay.dataset["proxies"] = String(ancestors.count);
    overlay.dataset["line"] = item !== null && item < ancestors.items ? ancestors.line(item).join(" ") : "";
  }

  /** The proxy that the reader has chosen, if there is such a one. */
  private chosenProxy(): number | null {
    const number = /^\d+$/.test(this.proxies) ? Number(this.proxies) : null;
    return number !== null && number < (this.ancestors?.count ?? 0) ? number : null;
  }

  private chooseProxy(proxy: number | null): void {
    this.proxies = proxy === null ? "all" : String(proxy);
    this.announce();
  }

  /** The point of the query. A stored query has none of its own and stands amid its three nearest items. */
  private queryPlace(points: Points, gallery: number): [number, number] | null {
    const { query } = this;
    if (query === null) return null;
    const near = query < gallery ? [query] : this.nearest.slice(0, 3).map(({ item }) => item);
    if (near.length === 0) return null;
    const mean = (offset: number) =>
      near.reduce((sum, item) => sum + (points[2 * item + offset] ?? 0), 0) / near.length;
    return [mean(0), mean(1)];
  }

  private placeCard(): void {
    const { card, painter, focused } = this;
    if (!card || !painter || focused === null) return;
    const [x, y] = [painter.screen[2 * focused] ?? 0, painter.screen[2 * focused + 1] ?? 0];
    const { width, height } = this.view;
    card.style.setProperty("--x", `${Math.max(0, Math.min(width - card.offsetWidth, x - card.offsetWidth / 2))}px`);
    const below = y + 22;
    const fits = below + card.offsetHeight < height;
    card.style.setProperty("--y", `${fits ? below : Math.max(0, y - 22 - card.offsetHeight)}px`);
  }

  // --- Moving ----------------------------------------------------------------------------------

  private move(view: Viewport): void {
    this.view = view;
    this.schedule();
  }

  private zoom(factor: number): void {
    this.move(zoomed(this.space, this.view, factor, this.view.width / 2, this.view.height / 2));
  }

  private fit(): void {
    const centre: [number, number] = this.space === disk || !this.points ? [0, 0] : bounds(this.points).centre;
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

  private onPointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas?.setPointerCapture(event.pointerId);
    const place = this.placeOf(event);
    this.pointers.set(event.pointerId, place);
    this.dragged = this.pointers.size > 1 ? CLICK_PIXELS : 0;
    this.keyboard = false;
    if (this.lassoOn && this.pointers.size === 1) this.lasso = [place];
    else this.grip = this.space.locate(...place, this.view);
  }

  private onPointerMove(event: PointerEvent): void {
    const place = this.placeOf(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.focusNear(place, 14);
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
      this.schedule();
    } else if (this.grip && this.dragged >= CLICK_PIXELS) {
      this.move(this.space.moved(this.grip, ...place, this.view));
    }
  }

  private onPointerUp(event: PointerEvent): void {
    const place = this.placeOf(event);
    if (!this.pointers.delete(event.pointerId) || event.type === "pointercancel") {
      this.lasso = [];
      return;
    }
    const touched = event.pointerType !== "mouse";
    if (this.dragged < CLICK_PIXELS) {
      this.lasso = [];
      const proxy = this.overlay ? (this.proxyLayer?.at(place, touched ? 18 : 8) ?? null) : null;
      if (proxy !== null) {
        this.grip = null;
        this.chooseProxy(proxy);
        return;
      }
      const before = this.focused;
      const item = this.focusNear(place, touched ? 26 : 14);
      // A first tap shows the card, a second one makes the item the query.
      if (item !== null && (!touched || item === before)) this.setQuery(item);
    } else if (this.lasso.length > 2) {
      this.finishLasso();
    }
    this.grip = null;
    const [rest] = this.pointers.values();
    if (rest) this.grip = this.space.locate(...rest, this.view);
    this.schedule();
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    this.move(zoomed(this.space, this.view, Math.exp(-pixels * 0.0016), ...this.placeOf(event)));
  }

  private onKey(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] as
      [number, number] | undefined;
    this.keyboard = true;
    if (direction && event.shiftKey) this.pan(-direction[0] * PAN_PIXELS, -direction[1] * PAN_PIXELS);
    else if (direction) this.step(...direction);
    else if (event.key === "+" || event.key === "=") this.zoom(ZOOM_STEP);
    else if (event.key === "-") this.zoom(1 / ZOOM_STEP);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" && this.focused !== null) this.setQuery(this.focused);
    else if (event.key === "Escape" && (this.focused !== null || this.choice)) {
      this.focused = null;
      this.choose(null);
    } else return;
    event.preventDefault();
  }

  /** Moves the focus to the nearest point in a direction, and the map so that the point can be seen. */
  private step(dx: number, dy: number): void {
    const { painter, faded } = this;
    if (!painter) return;
    const { width, height } = this.view;
    const [x, y] =
      this.focused === null
        ? [width / 2, height / 2]
        : [painter.screen[2 * this.focused] ?? 0, painter.screen[2 * this.focused + 1] ?? 0];
    let [best, cost] = [this.focused, Infinity];
    for (let item = 0; item < faded.length; item++) {
      if (faded[item] === 1 || item === this.focused) continue;
      const [ax, ay] = [(painter.screen[2 * item] ?? 0) - x, (painter.screen[2 * item + 1] ?? 0) - y];
      const along = ax * dx + ay * dy;
      const across = Math.abs(ax * dy - ay * dx);
      if (along <= 0.5 || across > along * 1.5) continue;
      if (along + 2 * across < cost) [best, cost] = [item, along + 2 * across];
    }
    this.focused = best;
    if (best === null) return;
    const [px, py] = [painter.screen[2 * best] ?? 0, painter.screen[2 * best + 1] ?? 0];
    const margin = 40;
    const [mx, my] = [Math.max(margin, Math.min(width - margin, px)), Math.max(margin, Math.min(height - margin, py))];
    if (mx !== px || my !== py) this.pan(mx - px, my - py);
  }

  /** Puts the focus on the point next to a place on the screen, if one is near enough. */
  private focusNear([x, y]: [number, number], within: number): number | null {
    const { painter, faded } = this;
    let [best, distance] = [null as number | null, within];
    for (let item = 0; painter && item < faded.length; item++) {
      // Chosen points win over faded ones that lie nearer.
      const d =
        Math.hypot((painter.screen[2 * item] ?? 0) - x, (painter.screen[2 * item + 1] ?? 0) - y) +
        (faded[item] === 1 ? 8 : 0);
      if (d < distance) [best, distance] = [item, d];
    }
    this.focused = best;
    return best;
  }

  private finishLasso(): void {
    const { painter, lasso } = this;
    const items: number[] = [];
    for (let item = 0; painter && item < this.faded.length; item++) {
      if (isInside(painter.screen[2 * item] ?? 0, painter.screen[2 * item + 1] ?? 0, lasso)) items.push(item);
    }
    this.lasso = [];
    this.lassoOn = false;
    this.choose(items.length > 0 ? { kind: "lasso", items } : null);
  }

  // --- Choosing --------------------------------------------------------------------------------

  private setQuery(item: number | null): void {
    this.query = item;
    this.dispatchEvent(new CustomEvent("akin-query", { detail: { item }, bubbles: true, composed: true }));
    this.announce();
  }

  choose(choice: Choice | null): void {
    this.choice = choice;
    this.announce();
  }

  /** Chooses a class by its level and number, as an address does; nothing if there is no such class. */
  chooseById(level: number, id: number): void {
    if (!this.source) return;
    this.tree ??= new ClassTree(this.source.collection);
    const node = this.tree.node(level, id);
    this.choice = node && { kind: "class", node };
    const open = new Set(this.open);
    for (let parent = node?.parent; parent; parent = parent.parent) open.add(parent);
    this.open = open;
  }

  /** Tells that the state has changed, so that the address follows. */
  announce(): void {
    this.dispatchEvent(new CustomEvent("akin-change", { bubbles: true, composed: true }));
  }

  private toggle(node: ClassNode): void {
    const open = new Set(this.open);
    if (!open.delete(node)) open.add(node);
    this.open = open;
  }

  /** The nodes of the tree that can be seen, from the top. */
  private visibleNodes(nodes: readonly ClassNode[] = this.tree?.roots ?? []): ClassNode[] {
    return nodes.flatMap((node) => [node, ...(this.open.has(node) ? this.visibleNodes(node.children) : [])]);
  }

  private onTreeKey(event: KeyboardEvent): void {
    const nodes = this.visibleNodes();
    const at = nodes.findIndex((node) => node === this.treeStop);
    const node = nodes[at];
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    let next: ClassNode | undefined = node;
    if (event.key === "ArrowDown") next = nodes[at + 1];
    else if (event.key === "ArrowUp") next = nodes[at - 1];
    else if (event.key === "Home") next = nodes[0];
    else if (event.key === "End") next = nodes.at(-1);
    else if (event.key === "ArrowRight" && node.children.length > 0) {
      if (this.open.has(node)) next = node.children[0];
      else this.toggle(node);
    } else if (event.key === "ArrowLeft") {
      if (this.open.has(node)) this.toggle(node);
      else next = node.parent ?? undefined;
    } else if (event.key === "Enter" || event.key === " ") this.chooseClass(node);
    else return;
    event.preventDefault();
    this.treeStop = next ?? node;
    void this.updateComplete.then(() =>
      this.renderRoot.querySelector<HTMLElement>("[role=treeitem][tabindex='0']")?.focus(),
    );
  }

  private chooseClass(node: ClassNode): void {
    const isChosen = this.choice?.kind === "class" && this.choice.node === node;
    this.choose(isChosen ? null : { kind: "class", node });
  }

  // --- The page --------------------------------------------------------------------------------

  protected override render() {
    const { source, tree, problem } = this;
    if (problem) return this.failed(problem);
    if (!source || !tree) return html`<p class="empty" role="status">Opening the gallery.</p>`;
    const map = this.mapEntry();
    if (!map) {
      return html`<p class="empty">
        This bundle has no map of its gallery. Write it again with <code>akin export</code>, which draws maps.
      </p>`;
    }
    return html`<div class="frame">
        ${this.shows("controls") ? this.toolbar(source) : nothing}
        <div class="stage">${this.stage(source)}</div>
        ${this.shows("tree") ? this.side(source, tree) : nothing}
      </div>
      <div class="caption">
        <p>${map.description}</p>
        ${this.shows("controls") ? saveCanvasButton(() => this.wholeCanvas(), `map-${this.entry()?.name}-${map.name}`) : nothing}
      </div>
      ${
        this.ancestors && this.proxies !== "" && this.shows("lists")
          ? proxyPanel(source, this.ancestors, this.chosenProxy(), {
              choose: (proxy) => this.chooseProxy(proxy),
              query: (item) => this.setQuery(item),
              focus: (item) => (this.focused = item),
            })
          : nothing
      }
      ${this.shows("lists") ? html`${this.nearestList(source)}${this.chosenGrid(source, tree)}` : nothing}`;
  }

  private failed({ message, hint }: Failure) {
    return html`<div class="empty" role="alert" data-testid="notice">
      <p>The map could not be drawn. ${sentence(message)}</p>
      <p class="soft">${sentence(hint)}</p>
    </div>`;
  }

  private toolbar(source: GallerySource) {
    const { collection, encoders } = source;
    const maps = this.entry()?.maps ?? [];
    const set = (change: () => void) => {
      change();
      this.announce();
    };
    const value = (event: Event) => (event.target as HTMLSelectElement).value;
    const level = this.colourLevel();
    return html`<div class="toolbar" role="group" aria-label="What the map shows">
      ${
        encoders.length > 1
          ? html`<label class="field"
              >Encoder
              <select
                data-testid="map-encoder"
                @change=${(event: Event) => set(() => (this.encoder = Number(value(event))))}
              >
                ${encoders.map(({ name }, at) => html`<option value=${at} ?selected=${at === this.encoder}>${name}</option>`)}
              </select></label
            >`
          : nothing
      }
      <label class="field"
        >Map
        <select data-testid="map-name" @change=${(event: Event) => set(() => (this.map = value(event)))}>
          ${maps.map(({ name }) => html`<option value=${name} ?selected=${name === this.mapEntry()?.name}>${name}</option>`)}
        </select></label
      >
      <label class="field"
        >Colour
        <select data-testid="map-colour" @change=${(event: Event) => set(() => (this.colour = Number(value(event))))}>
          ${collection.levels.map((name, at) => html`<option value=${at + 1} ?selected=${level === at + 1}>${name}</option>`)}
          <option value="0" ?selected=${level === 0} ?disabled=${this.query === null}>kinship to the query</option>
        </select></label
      >
      ${
        this.ancestors
          ? proxyControl(this.proxies !== "", (shown) => set(() => (this.proxies = shown ? "all" : "")))
          : nothing
      }
      <span class="tools">
        <button
          type="button"
          class="quiet"
          aria-pressed=${this.lassoOn}
          data-testid="lasso"
          @click=${() => (this.lassoOn = !this.lassoOn)}
        >
          Lasso
        </button>
        <button type="button" class="quiet" aria-label="Zoom in" @click=${() => this.zoom(ZOOM_STEP)}>+</button>
        <button type="button" class="quiet" aria-label="Zoom out" @click=${() => this.zoom(1 / ZOOM_STEP)}>−</button>
        <button type="button" class="quiet" @click=${() => this.fit()}>Whole map</button>
      </span>
    </div>`;
  }

  private stage(source: GallerySource) {
    const { focused } = this;
    return html`<canvas
        data-testid="map"
        tabindex="0"
        role="application"
        aria-roledescription="map"
        aria-label="Map of the gallery"
        aria-describedby="map-keys"
        data-lasso=${this.lassoOn}
        @pointerdown=${this.onPointerDown}
        @pointermove=${this.onPointerMove}
        @pointerup=${this.onPointerUp}
        @pointercancel=${this.onPointerUp}
        @pointerleave=${(event: PointerEvent) => {
          if (event.pointerType === "mouse" && this.pointers.size === 0 && !this.keyboard) this.focused = null;
        }}
        @wheel=${{ handleEvent: (event: WheelEvent) => this.onWheel(event), passive: false }}
        @keydown=${this.onKey}
      ></canvas>
      ${this.ancestors && this.proxies !== "" ? html`<canvas class="proxies" aria-hidden="true"></canvas>` : nothing}
      ${focused === null ? nothing : this.itemCard(source, focused)}
      <p id="map-keys" class="visually-hidden">
        The arrow keys move from point to point, Enter makes a point the query, plus and minus zoom, Shift with an arrow
        key moves the map, 0 shows all of it. The tree beside the map chooses classes.
      </p>
      <p class="visually-hidden" role="status" data-testid="map-status">
        ${focused !== null && this.keyboard ? this.describe(source, focused) : ""}
      </p>`;
  }

  private describe({ collection }: GallerySource, item: number): string {
    const score = this.scores?.value(item, "h_ap") ?? null;
    const kin =
      this.query === null || this.query === item
        ? []
        : [relation(sharedLevel(collection.labels(this.query), collection.labels(item)), collection.levels)];
    return [
      ...collection.path(item).reverse(),
      ...kin,
      ...(score === null ? [] : [`H-AP ${format.score(score)} as the query`]),
      ...this.lineText(item),
    ].join(", ");
  }

  /** The ancestors of an item, where they are shown. */
  private lineText(item: number): string[] {
    const line = this.proxies === "" ? [] : (this.ancestors?.line(item) ?? []);
    return line.length === 0 ? [] : [`below proxy ${line.map((proxy) => proxy + 1).join(" and ")}`];
  }

  private itemCard({ collection, sprites }: GallerySource, item: number) {
    const path = collection.path(item);
    const score = this.scores?.value(item, "h_ap") ?? null;
    const shared =
      this.query === null || this.query === item
        ? null
        : sharedLevel(collection.labels(this.query), collection.labels(item));
    return html`<div class="card" aria-hidden="true">
      <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
      <span>
        <strong>${path.at(-1)}</strong>
        ${path.length > 1 ? html`<span class="soft">${path.slice(0, -1).join(" › ")}</span>` : nothing}
        ${shared === null ? nothing : html`<span>${kinshipRing(shared, collection.depth)} ${relation(shared, collection.levels)}</span>`}
        ${item === this.query ? html`<span>the query</span>` : nothing}
        ${score === null ? nothing : html`<span class="number">H-AP ${format.score(score)}</span>`}
      </span>
    </div>`;
  }

  private side(source: GallerySource, tree: ClassTree) {
    const level = this.colourLevel();
    return html`<div class="side">
      ${
        level === 0
          ? html`<ul class="kinds" aria-label="Kinship to the query">
              ${Array.from({ length: source.collection.depth + 1 }, (_, shared) => {
                const { depth, levels } = source.collection;
                return html`<li>
                  ${markIcon(kinMark(shared, depth))} ${kinshipRing(shared, depth)} ${relation(shared, levels)}
                </li>`;
              }).reverse()}
            </ul>`
          : nothing
      }
      <p class="side-head" id="tree-name">
        <span>Classes</span><span class="soft">items${this.scores?.has("h_ap") ? ", mean H-AP" : ""}</span>
      </p>
      <ul role="tree" aria-labelledby="tree-name" data-testid="tree" @keydown=${this.onTreeKey}>
        ${this.visibleNodes(tree.roots).map((node) => this.treeItem(node, level, tree))}
      </ul>
    </div>`;
  }

  private treeItem(node: ClassNode, level: number, tree: ClassTree) {
    const isOpen = this.open.has(node);
    const isLeaf = node.children.length === 0;
    const siblings = node.parent?.children ?? tree.roots;
    const score = meanOfClass(node, this.scores);
    const isChosen = this.choice?.kind === "class" && this.choice.node === node;
    return html`<li
      role="treeitem"
      aria-level=${node.level}
      aria-setsize=${siblings.length}
      aria-posinset=${siblings.indexOf(node) + 1}
      aria-expanded=${isLeaf ? nothing : isOpen}
      aria-selected=${isChosen}
      tabindex=${node === this.treeStop ? 0 : -1}
      data-level=${node.level}
      data-class=${node.id}
      data-items=${node.items.length}
      ${vars({ "--depth": node.level - 1, "--score": score ?? 0 })}
      @click=${() => {
        this.treeStop = node;
        this.chooseClass(node);
      }}
      @focus=${() => (this.treeStop = node)}
    >
      <span
        class="twist"
        data-open=${isOpen}
        data-leaf=${isLeaf}
        @click=${(event: Event) => {
          event.stopPropagation();
          if (!isLeaf) this.toggle(node);
        }}
      ></span>
      ${node.level === level ? markIcon(classMark(node.place)) : nothing}
      <span class="node-name">${node.name}</span>
      <span class="number soft">${node.items.length}<span class="visually-hidden"> items</span></span>
      ${score === null ? html`<span></span>` : html`<span class="node-score number"><span class="visually-hidden">mean H-AP </span>${score.toFixed(2)}</span>`}
    </li>`;
  }

  private nearestList({ collection, sprites }: GallerySource) {
    const { query } = this;
    if (query === null)
      return html`<p class="hint">Choose a point, and the map shows what this encoder finds nearest to it.</p>`;
    const chosen = this.onlyChosen ? this.chosenItems() : null;
    const members = chosen && new Set(chosen);
    const results = this.nearest
      .map((result, at) => ({ ...result, rank: at + 1 }))
      .filter(({ item }) => !members || members.has(item));
    return html`<section class="list" aria-labelledby="nearest-title">
      <header>
        <h2 id="nearest-title">Nearest to this ${collection.name(query)}</h2>
        <p class="soft">
          ranked by ${this.entry()?.name}. Lines on the map lead to the first
          ${NEAREST}.${collection.isStoredQuery(query) ? " It is no item of the gallery: the map shows it amid its three nearest." : ""}
        </p>
        ${
          this.choice
            ? html`<label class="check"
                ><input
                  type="checkbox"
                  data-testid="only-chosen"
                  .checked=${this.onlyChosen}
                  @change=${(event: Event) => (this.onlyChosen = (event.target as HTMLInputElement).checked)}
                />
                only ${this.choiceName()}</label
              >`
            : nothing
        }
        ${this.bundle === "" ? html`<a href=${this.searchAddress(query)}>Search with it</a>` : nothing}
        <button type="button" class="quiet" @click=${() => this.setQuery(null)}>Clear the query</button>
      </header>
      <ul class="tiles" data-testid="nearest" aria-busy=${this.ranking}>
        <li class="is-query">
          <akin-thumb .picture=${{ item: query, sprites }}></akin-thumb><span class="tile-line">the query</span>
        </li>
        ${results.slice(0, NEAREST).map(
          ({ item, rank, shared_level }) =>
            html`<li data-item=${item} data-shared-level=${shared_level ?? "unknown"}>
              <button type="button" @click=${() => this.setQuery(item)} @focus=${() => (this.focused = item)}>
                <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
                <span class="tile-line"
                  ><span class="number">${rank}</span
                  ><span class="visually-hidden">. ${collection.name(item)},</span>
                  ${kinshipRing(shared_level ?? 0, collection.depth)}
                  ${relation(shared_level ?? 0, collection.levels)}</span
                >
              </button>
            </li>`,
        )}
      </ul>
    </section>`;
  }

  /** The address of the page's search with an item, in the page's own place. */
  private searchAddress(item: number): string {
    const params = new URLSearchParams(location.search);
    for (const name of [...params.keys()]) if (name !== "bundle" && name !== "backend") params.delete(name);
    params.set("q", String(item));
    params.set("encoder", this.entry()?.name ?? "");
    return `?${params}`;
  }

  private choiceName(): string {
    const { choice } = this;
    return choice?.kind === "class" ? choice.node.name : "inside the lasso";
  }

  private chosenGrid({ collection, sprites }: GallerySource, tree: ClassTree) {
    const { choice } = this;
    const items = this.chosenItems();
    if (!choice || !items) return nothing;
    const title = choice.kind === "class" ? tree.path(choice.node).join(" › ") : "Inside the lasso";
    return html`<section class="list" aria-labelledby="chosen-title" data-testid="chosen" data-count=${items.length}>
      <header>
        <h2 id="chosen-title">${title}</h2>
        <p class="soft">${format.count(items.length, "item")}</p>
        <button type="button" class="quiet" data-testid="clear-choice" @click=${() => this.choose(null)}>
          Show all
        </button>
      </header>
      <ul class="tiles small">
        ${items.slice(0, this.shown).map(
          (item) =>
            html`<li data-item=${item}>
              <button
                type="button"
                aria-label=${`Make this ${collection.name(item)} the query`}
                @click=${() => this.setQuery(item)}
                @focus=${() => (this.focused = item)}
                @pointerenter=${() => (this.focused = item)}
              >
                <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
              </button>
            </li>`,
        )}
      </ul>
      ${
        items.length > this.shown
          ? html`<button type="button" class="quiet" @click=${() => (this.shown += CHOSEN)}>Show more</button>`
          : nothing
      }
    </section>`;
  }
}
customElements.define("akin-map", AkinMap);

declare global {
  interface HTMLElementTagNameMap {
    "akin-map": AkinMap;
  }
}
