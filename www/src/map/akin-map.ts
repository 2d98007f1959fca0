// <akin-map>: the gallery as a map. Every point is an item, or the mean of a class; near points are alike.
//
// In a page of somebody else: `<akin-map bundle="bundle/"></akin-map>`. The page's own views give it a
// `source` instead.
//
// What tests may rely on:
//   [data-testid=map]        the canvas, with data-points, data-visible, data-pictures="true | false",
//                            data-drawing="webgpu | canvas", data-drawn="true | false"
//   [data-testid=map-points] what the points are: items or means; the card of a class is .card[data-class]
//   [data-testid=map-status] what screen readers read: the item or the class in focus
//   [data-testid=tree]       role=tree; treeitems with data-level, data-class, data-items
//   [data-testid=chosen]     the grid of chosen items, with data-count
//   [data-testid=show-proxies], [data-testid=proxies]   see proxy-panel.ts; the overlay is canvas.proxies[data-proxies]
//   [data-testid=nearest]    the query's nearest items: li[data-item][data-shared-level]
//   the events akin-query ({ item }) and akin-change, when the address should follow

import { html, nothing, type PropertyValues } from "lit";
import { property, query as element, state } from "lit/decorators.js";
import { saveCanvasButton } from "../elements/save-chart.js";
import { ShadowElement, sheet } from "../elements/shadow.js";
import { sentence, toFailure, type Failure } from "../failure.js";
import type { GalleryMap, MapMeans, Result } from "../messages/engine.js";
import type { Running } from "../protocol.js";
import { isStopped, session, type Session } from "../session.js";
import "../elements/thumb.js";
import thumb from "../elements/thumb.css";
import styles from "./akin-map.css";
import { ClassPanel } from "./class-panel.js";
import { dress, UNDRESSED } from "./dress.js";
import { GallerySource, type QueryScores } from "./gallery-source.js";
import { disk, type Points } from "./geometry.js";
import { GpuDrawing, isDrawnByGpu } from "./gpu-drawing.js";
import { classCard, describeClass, describeItem, itemCard } from "./item-card.js";
import { chosenGrid, NEAREST, nearestList, type ListActions, type Nearest } from "./map-lists.js";
import { mapToolbar } from "./map-toolbar.js";
import { classMark, colourReader, kinMark, type Mark } from "./marks.js";
import { Navigation } from "./navigation.js";
import { Painter, Pictures } from "./painter.js";
import { ClassMeans, Items, type Plotted } from "./plotted.js";
import { Proxies } from "./proxies.js";
import { ProxyLayer } from "./proxy-layer.js";
import { proxyPanel } from "./proxy-panel.js";
import type { Inks, Scene } from "./scene.js";
import { chosenItems, ClassTree, type Choice, type ClassNode } from "./tree.js";

/** The number of chosen items shown at first. */
const CHOSEN = 48;

export class AkinMap extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(thumb), sheet(styles)];

  /** The folder of a bundle, where no source is given. */
  @property() accessor bundle = "";
  @property({ attribute: false }) accessor source: GallerySource | null = null;
  @property({ attribute: false }) accessor encoder = 0;
  /** The name of the map; the encoder's first map if it has none of this name. */
  @property() accessor map = "";
  /** Whether points are the means of the finest classes, where the map has them, and not items. */
  @property({ type: Boolean }) accessor means = false;
  /** What colours show: a level, 1 … L, or 0 for the kinship to the query. */
  @property({ type: Number }) accessor colour = 1;
  @property({ attribute: false }) accessor query: number | null = null;
  @property({ attribute: false }) accessor choice: Choice | null = null;

  /** The learned ancestors: `""` hides them, `"all"` shows them, a number from 0 also chooses one. */
  @property() accessor proxies = "";

  @state() private accessor ancestors: Proxies | null = null;
  @state() private accessor scores: QueryScores | null = null;
  @state() private accessor points: Points | null = null;
  @state() private accessor plotted: Plotted | null = null;
  @state() private accessor problem: Failure | null = null;
  @state() private accessor nearest: readonly Result[] = [];
  @state() private accessor ranking = false;
  @state() private accessor shown = CHOSEN;
  @state() private accessor onlyChosen = false;

  @element("canvas") private accessor canvas!: HTMLCanvasElement | null;
  @element("canvas.proxies") private accessor overlay!: HTMLCanvasElement | null;
  @element(".card") private accessor card!: HTMLElement | null;

  private readonly navigation = new Navigation({
    shown: () => ({
      points: this.points,
      screen: this.painter?.screen ?? new Float32Array(0),
      // Means of other classes can be reached while one is chosen.
      faded: this.plotted instanceof ClassMeans ? new Uint8Array(this.plotted.count) : this.dress.faded,
    }),
    paint: () => this.schedule(),
    changed: () => this.requestUpdate(),
    select: (point) => this.select(point),
    encircle: (points) => {
      const items = points.flatMap((point) => this.plotted?.items(point) ?? []);
      this.choose(items.length > 0 ? { kind: "lasso", items } : null);
    },
    release: () => {
      const { choice } = this;
      if (choice) this.choose(null);
      return choice !== null;
    },
    chooseProxy: (place, within) => {
      const proxy = this.overlay ? (this.proxyLayer?.at(place, within) ?? null) : null;
      if (proxy !== null) this.chooseProxy(proxy);
      return proxy !== null;
    },
  });
  private classes: ClassPanel | null = null;
  private painter: Painter | null = null;
  private proxyLayer: ProxyLayer | null = null;
  private pictures: Pictures | null = null;
  /** The session of the source, while the element is in a document. */
  private session: Session | null = null;
  /** The engine that draws the map, as the session knew it when it began. */
  private drawer: Running | null = null;
  private gpuHasFailed = false;
  private inks: Inks | null = null;
  private marks: Mark[] = [];
  private dress = UNDRESSED;
  private frame = 0;
  private loaded = "";
  private ranked = "";
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
    // A notebook sets the colour scheme of the element itself.
    this.themed.observe(this, { attributeFilter: ["style"] });
    this.scheme.addEventListener("change", this.onScheme);
    this.followSession(this.source?.session ?? null);
    // A notebook takes an element out of the document and puts it back.
    if (this.painter && this.canvas) this.resized.observe(this.canvas);
    if (!this.source && this.bundle) void this.openBundle();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.themed.disconnect();
    this.resized.disconnect();
    this.scheme.removeEventListener("change", this.onScheme);
    this.followSession(null);
    this.closeGpu();
    cancelAnimationFrame(this.frame);
  }

  private followSession(session: Session | null): void {
    this.session?.removeEventListener("lost", this.onLost);
    this.session?.removeEventListener("change", this.onEngine);
    session?.addEventListener("lost", this.onLost);
    session?.addEventListener("change", this.onEngine);
    this.session = session;
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

  /** The class means of the map, if points are these. */
  private meansEntry(): MapMeans | null {
    return (this.means && this.mapEntry()?.class_means) || null;
  }

  private async load(source: GallerySource): Promise<void> {
    const map = this.mapEntry();
    const means = this.meansEntry();
    const coordinates = means?.coordinates ?? map?.coordinates;
    const key = `${this.encoder}/${coordinates}`;
    if (key === this.loaded) return;
    this.loaded = key;
    this.problem = null;
    const { tree } = this.openClasses(source);
    try {
      const scores = await source.queryScores(this.encoder);
      const points = coordinates === undefined ? null : await source.numbers(coordinates);
      const ancestors = map?.proxies && !means ? await Proxies.load(source, map.proxies) : null;
      if (key !== this.loaded) return;
      this.ancestors = ancestors;
      this.scores = scores;
      this.points = points;
      this.plotted = means ? new ClassMeans(tree, means) : new Items(source.collection, tree);
      if (!points) return;
      this.navigation.open(points, map?.geometry === "poincare_disk");
      this.dressAgain();
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

  private dressAgain(): void {
    const { classes, points, plotted, query } = this;
    if (!classes || !points || !plotted) return;
    const shown = { points, level: this.colourLevel(), query, chosen: this.choice && chosenItems(this.choice) };
    this.dress = dress(plotted, classes.tree, shown);
    this.recolour();
  }

  private recolour(): void {
    const { source, classes, renderRoot } = this;
    if (!source || !classes || !(renderRoot instanceof ShadowRoot)) return;
    const level = this.colourLevel();
    const { depth } = source.collection;
    const marks =
      level === 0
        ? Array.from({ length: depth + 1 }, (_, shared) => kinMark(shared, depth))
        : (classes.tree.levels[level - 1] ?? []).map(({ place }) => classMark(place));
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
      this.followSession(this.source.session);
      this.openClasses(this.source);
      this.loaded = "";
      this.ranked = "";
      this.closeGpu();
      this.gpuHasFailed = false;
    }
    if (this.source) {
      void this.load(this.source);
      void this.rank(this.source);
    }
    if (changed.has("source") || changed.has("colour")) this.classes?.openTo(this.colourLevel());
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
    if ((["colour", "query", "choice", "source"] as const).some((name) => changed.has(name))) this.dressAgain();
    this.schedule();
  }

  private resize(): void {
    const { canvas } = this;
    if (!canvas) return;
    this.navigation.resize(canvas.clientWidth, canvas.clientHeight);
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  /** Lets the engine's graphics device draw, where it has one. */
  private followEngine(): void {
    const running = this.session?.running ?? null;
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
    const { points, plotted, inks, source, navigation } = this;
    if (!points || !plotted || !inks || !source || this.dress.markOf.length * 2 !== points.length) return null;
    const { tile } = source.collection.manifest.thumbnails;
    return {
      points,
      space: navigation.space,
      isDisk: navigation.space === disk,
      marks: this.marks,
      ...this.dress,
      query: this.queryPlace(points, plotted),
      // Lines lead to items.
      nearest: plotted instanceof Items ? this.nearest.slice(0, NEAREST).map(({ item }) => item) : [],
      focus: navigation.focused,
      lasso: navigation.lasso,
      hasPictures: plotted instanceof Items,
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
    const { visible, pictures } = painter.paint(scene, this.navigation.view, devicePixelRatio);
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
    new Painter(whole).paint(scene, this.navigation.view, devicePixelRatio);
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
    const item = this.navigation.focused ?? this.query;
    this.proxyLayer.draw(
      { proxies: ancestors, points, space, isDisk, chosen: this.chosenProxy(), item, inks },
      this.navigation.view,
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

  /** The point of the query. A stored query has none among items and stands amid its three nearest. */
  private queryPlace(points: Points, plotted: Plotted): [number, number] | null {
    const { query } = this;
    if (query === null) return null;
    const own = plotted.pointOf(query);
    const amid = plotted instanceof Items ? this.nearest.slice(0, 3).map(({ item }) => item) : [];
    const near = own === null ? amid : [own];
    if (near.length === 0) return null;
    const mean = (offset: number) =>
      near.reduce((sum, item) => sum + (points[2 * item + offset] ?? 0), 0) / near.length;
    return [mean(0), mean(1)];
  }

  private placeCard(): void {
    const { card, painter } = this;
    const { focused, view } = this.navigation;
    if (!card || !painter || focused === null) return;
    const [x, y] = [painter.screen[2 * focused] ?? 0, painter.screen[2 * focused + 1] ?? 0];
    const { width, height } = view;
    card.style.setProperty("--x", `${Math.max(0, Math.min(width - card.offsetWidth, x - card.offsetWidth / 2))}px`);
    const below = y + 22;
    const fits = below + card.offsetHeight < height;
    card.style.setProperty("--y", `${fits ? below : Math.max(0, y - 22 - card.offsetHeight)}px`);
  }

  // --- Choosing --------------------------------------------------------------------------------

  private setQuery(item: number | null): void {
    this.query = item;
    this.dispatchEvent(new CustomEvent("akin-query", { detail: { item }, bubbles: true, composed: true }));
    this.announce();
  }

  /** Makes the item of a point the query, or chooses its class. */
  private select(point: number): void {
    const { plotted } = this;
    if (!(plotted instanceof ClassMeans)) return this.setQuery(point);
    const node = plotted.node(point);
    if (!node) return;
    this.chooseClass(node);
    this.classes?.reveal(node);
    this.requestUpdate();
  }

  choose(choice: Choice | null): void {
    this.choice = choice;
    this.announce();
  }

  /** Chooses a class by its level and number, as an address does; nothing if there is no such class. */
  chooseById(level: number, id: number): void {
    if (!this.source) return;
    const classes = this.openClasses(this.source);
    const node = classes.tree.node(level, id);
    this.choice = node && { kind: "class", node };
    classes.reveal(node);
  }

  /** Tells that the state has changed, so that the address follows. */
  announce(): void {
    this.dispatchEvent(new CustomEvent("akin-change", { bubbles: true, composed: true }));
  }

  /** The classes of a gallery, as they are opened beside the map. */
  private openClasses({ collection }: GallerySource): ClassPanel {
    if (this.classes?.tree.collection !== collection) {
      this.classes = new ClassPanel(new ClassTree(collection), {
        changed: () => {
          this.requestUpdate();
          return this.updateComplete;
        },
        choose: (node) => this.chooseClass(node),
      });
    }
    return this.classes;
  }

  private chooseClass(node: ClassNode): void {
    const isChosen = this.choice?.kind === "class" && this.choice.node === node;
    this.choose(isChosen ? null : { kind: "class", node });
  }

  // --- The page --------------------------------------------------------------------------------

  protected override render() {
    const { source, classes, problem, navigation } = this;
    if (problem) return this.failed(problem);
    if (!source || !classes) return html`<p class="empty" role="status">Opening the gallery.</p>`;
    const map = this.mapEntry();
    if (!map) {
      return html`<p class="empty">
        This bundle has no map of its gallery. Write it again with <code>akin export</code>, which draws maps.
      </p>`;
    }
    const level = this.colourLevel();
    const means = this.meansEntry();
    const finest = source.collection.levels.at(-1);
    const chosen = this.choice?.kind === "class" ? this.choice.node : null;
    const actions = {
      query: (item: number | null) => this.setQuery(item),
      focus: (item: number) => (navigation.focused = this.plotted?.pointOf(item) ?? null),
    };
    return html`<div class="frame">
        ${this.shows("controls") ? this.toolbar(source, map.name, level) : nothing}
        <div class="stage">${this.stage(source)}</div>
        ${this.shows("tree") ? classes.render({ level, chosen, scores: this.scores }) : nothing}
      </div>
      <div class="caption">
        <p>${means ? `Each point is the mean embedding of one ${finest}. ${means.description}` : map.description}</p>
        ${this.shows("controls") ? saveCanvasButton(() => this.wholeCanvas(), `map-${this.entry()?.name}-${map.name}${means ? "-class-means" : ""}`) : nothing}
      </div>
      ${
        this.ancestors && this.proxies !== "" && this.shows("lists")
          ? proxyPanel(source, this.ancestors, this.chosenProxy(), {
              ...actions,
              choose: (proxy) => this.chooseProxy(proxy),
            })
          : nothing
      }
      ${this.shows("lists") ? html`${this.nearestList(source, actions)}${this.chosenGrid(source, classes, actions)}` : nothing}`;
  }

  private toolbar(source: GallerySource, map: string, level: number) {
    const set = (change: () => void) => {
      change();
      this.announce();
    };
    const proxies = { has: this.ancestors !== null, shown: this.proxies !== "" };
    const has = (map: GalleryMap | null) => Boolean(map?.class_means);
    const shown = {
      encoder: this.encoder,
      map,
      level,
      hasQuery: this.query !== null,
      means: (this.entry()?.maps ?? []).some(has) ? this.meansEntry() !== null : null,
      hasMeans: has(this.mapEntry()),
      proxies,
    };
    return mapToolbar(source, shown, this.navigation, {
      encoder: (index) => set(() => (this.encoder = index)),
      map: (name) => set(() => (this.map = name)),
      colour: (level) => set(() => (this.colour = level)),
      means: (on) => set(() => (this.means = on)),
      proxies: (shown) => set(() => (this.proxies = shown ? "all" : "")),
    });
  }

  private nearestList(source: GallerySource, actions: ListActions) {
    const { query, choice, onlyChosen } = this;
    const hasLines = this.meansEntry() === null;
    if (query === null && hasLines)
      return html`<p class="hint">Choose a point, and the map shows what this encoder finds nearest to it.</p>`;
    if (query === null)
      return choice ? nothing : html`<p class="hint">Choose a point to see the pictures of its class.</p>`;
    const encoder = this.entry()?.name ?? "";
    const search = this.bundle === "" ? this.searchAddress(query) : null;
    const nearest: Nearest = {
      query,
      encoder,
      results: this.nearest,
      isRanking: this.ranking,
      choice,
      onlyChosen,
      onMap: hasLines ? "lines" : (this.plotted?.pointOf(query) ?? null) === null ? "nothing" : "circle",
      search,
    };
    return nearestList(source, nearest, { ...actions, onlyChosen: (on) => (this.onlyChosen = on) });
  }

  private chosenGrid(source: GallerySource, { tree }: ClassPanel, actions: ListActions) {
    return (
      this.choice &&
      chosenGrid(source, tree, this.choice, this.shown, {
        ...actions,
        showAll: () => this.choose(null),
        showMore: () => (this.shown += CHOSEN),
      })
    );
  }

  private failed({ message, hint }: Failure) {
    return html`<div class="empty" role="alert" data-testid="notice">
      <p>The map could not be drawn. ${sentence(message)}</p>
      <p class="soft">${sentence(hint)}</p>
    </div>`;
  }

  private stage(source: GallerySource) {
    const { navigation, ancestors } = this;
    const hasProxies = ancestors !== null && this.proxies !== "";
    const isMeans = this.meansEntry() !== null;
    const shown = this.focusShown(source, hasProxies ? ancestors : null);
    return html`<canvas
        data-testid="map"
        tabindex="0"
        role="application"
        aria-roledescription="map"
        aria-label="Map of the gallery"
        aria-describedby="map-keys"
        data-lasso=${navigation.lassoOn}
        @pointerdown=${navigation.onPointerDown}
        @pointermove=${navigation.onPointerMove}
        @pointerup=${navigation.onPointerUp}
        @pointercancel=${navigation.onPointerUp}
        @pointerleave=${navigation.onPointerLeave}
        @wheel=${{ handleEvent: navigation.onWheel, passive: false }}
        @keydown=${navigation.onKey}
      ></canvas>
      ${hasProxies ? html`<canvas class="proxies" aria-hidden="true"></canvas>` : nothing} ${shown?.card}
      <p id="map-keys" class="visually-hidden">
        The arrow keys move from point to point, Enter
        ${isMeans ? "chooses the class of a point" : "makes a point the query"}, plus and minus zoom, Shift with an
        arrow key moves the map, 0 shows all of it. The tree beside the map chooses classes.
      </p>
      <p class="visually-hidden" role="status" data-testid="map-status">${navigation.keyboard ? shown?.text : ""}</p>`;
  }

  /** The card of the point in focus, and what screen readers read of it. */
  private focusShown(source: GallerySource, ancestors: Proxies | null) {
    const { plotted, classes, query, scores, navigation } = this;
    const { focused } = navigation;
    if (focused === null || !plotted || !classes) return null;
    if (!(plotted instanceof ClassMeans)) {
      const shown = { item: focused, query, scores };
      return { card: itemCard(source, shown), text: describeItem(source, shown, ancestors?.line(focused) ?? []) };
    }
    const node = plotted.node(focused);
    if (!node) return null;
    const shown = { node, tree: classes.tree, query, scores };
    return { card: classCard(source, shown), text: describeClass(shown) };
  }

  /** The address of the page's search with an item, in the page's own place. */
  private searchAddress(item: number): string {
    const params = new URLSearchParams(location.search);
    for (const name of [...params.keys()]) if (name !== "bundle" && name !== "backend") params.delete(name);
    params.set("q", String(item));
    params.set("encoder", this.entry()?.name ?? "");
    return `?${params}`;
  }
}

customElements.define("akin-map", AkinMap);

declare global {
  interface HTMLElementTagNameMap {
    "akin-map": AkinMap;
  }
}
