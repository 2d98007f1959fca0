// The state of the search: the query, the encoders shown, and their answers. It asks the session, and its
// host draws it.

import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { AddressState, COMMON, Values } from "../address.js";
import { isInClass, parseClass, printClass, type ClassChoice } from "../class-choice.js";
import type { Collection } from "../collection.js";
import { failure, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { addLocal, isLocal, isOpenLocal } from "../local-bundles.js";
import { isSameBundle, loadBundles, type BundleEntry } from "../gallery/bundles.js";
import { OwnPhotos } from "../gallery/own-photos.js";
import { OwnGallery } from "../gallery/own-gallery.js";
import type { Folder } from "../gallery/photos.js";
import type { Kept } from "../gallery/store.js";
import { relation } from "../kinship.js";
import type { LookRequest } from "../look/akin-look.js";
import { MOST_LEVELS, saveLastRankings, type LastRanking } from "../last-ranking.js";
import type { Backend, Manifest, Searched } from "../protocol.js";
import type { Embedded, Likeness, Metrics, Ranked, Result, Vote } from "../messages/engine.js";
import type { ServedGallery, ServedQuery } from "../served/served-gallery.js";
import { isStopped, session, type OpenBundle } from "../session.js";
import { PROMISE } from "./answer-note.js";
import type { Parts, Timing } from "./answer-time.js";
import type { Shown } from "./encoder-switch.js";
import { PAGE, type parameters } from "./parameters.js";
import type { Query } from "./query-card.js";

/** The answer of one encoder to the query. */
export interface Answer {
  encoder: number;
  results: Result[];
  metrics: Metrics | null;
  votes: Vote[] | null;
  /** How far the votes hold, at each promise. */
  answers: Ranked["answers"];
  likeness: Likeness | null;
  codes: Ranked["codes"];
}

/** A result, and the column of its ranking. */
export interface Looking {
  item: number;
  column: number;
}

/** The number of results in the strip, however many cards are shown. */
export const STRIP = 100;

type Parameters = typeof parameters & typeof COMMON;
/** The parts of an answer's time before the page draws it. */
type EngineTimes = Omit<Parts, "drawing">;

export class SearchController implements ReactiveController {
  loading: "loading" | "ready" | "error" = "loading";
  openFailure: Failure | null = null;
  bundle: OpenBundle | null = null;
  shown: Shown = { encoder: 0, compare: null };
  query: Query | null = null;
  queryFailure: Failure | null = null;
  answers: Answer[] = [];
  /** The time of the answer that is shown. */
  timing: Timing | null = null;
  busy = false;
  /** The least share of right answers among those that the page calls sure. */
  promise = PROMISE;
  statusText = "Loading the engine.";
  /** The galleries that the page offers. */
  bundles: readonly BundleEntry[] = [];
  /** Whether the reader's own gallery is shown, and not the bundle. */
  isOwn = false;
  readonly own: OwnPhotos;
  /** The result of which the reader sees where the encoder looks. */
  look: LookRequest | null = null;

  private address: AddressState<Parameters> | null = null;
  /** The embeddings of the reader's own picture, by encoder. */
  private embeddings = new Map<number, Promise<Embedded>>();
  private queryNumber = 0;
  /** The manifest of the bundle that is open. */
  private opened: Manifest | null = null;
  /** The gallery of the server, of which the bundle that is open is a sample. */
  private served: ServedGallery | null = null;
  /** The index of the bundles that the page offers. */
  private index: Promise<readonly BundleEntry[]> = Promise.resolve([]);
  /** The kept gallery that is read from the store as soon as a bundle is open. */
  private wanted: Kept | null = null;
  /** When the reader chose the query that has no answer yet. */
  private asked: number | null = null;
  private attempts = 0;

  private readonly redraw = (): void => this.host.requestUpdate();

  constructor(private readonly host: ReactiveControllerHost) {
    host.addController(this);
    this.own = new OwnPhotos(this.redraw);
  }

  hostConnected(): void {
    session.addEventListener("change", this.redraw);
    session.addEventListener("lost", this.reopen);
  }

  hostDisconnected(): void {
    session.removeEventListener("change", this.redraw);
    session.removeEventListener("lost", this.reopen);
  }

  /** Opens the bundle that the address names. */
  start(address: AddressState<Parameters>): void {
    this.address = address;
    address.onRestore(() => this.restore());
    this.index = loadBundles();
    void this.open();
    void this.own.start();
    void this.index.then(
      (bundles) => this.set({ bundles }),
      (error: unknown) => this.set({ queryFailure: toFailure(error) }),
    );
  }

  private readonly reopen = (): void => {
    this.embeddings.clear();
    if (this.address) void this.open();
  };

  /** Whether the view has given it the address. */
  get started(): boolean {
    return this.address !== null;
  }

  private get values(): Readonly<Values<Parameters>> {
    if (!this.address) throw new Error("the search has not been started");
    return this.address.values;
  }

  /** The number of results to show. */
  get k(): number {
    return this.values.k;
  }

  /** The class whose results are shown; null for all results. */
  get classChoice(): ClassChoice | null {
    const { collection } = this.bundle ?? {};
    return collection ? parseClass(this.values.class, collection) : null;
  }

  choosePromise(promise: number): void {
    this.promise = promise;
    this.host.requestUpdate();
  }

  chooseClass(choice: ClassChoice | null): void {
    this.address?.set({ class: printClass(choice), k: PAGE });
    void this.run();
  }

  /** The results that are shown, with their places in the ranking. */
  shownResults({ results }: Answer): { result: Result; place: number }[] {
    const { classChoice, bundle } = this;
    return results
      .map((result, place) => ({ result, place }))
      .filter(({ result }) => !bundle || isInClass(bundle.collection, classChoice, result.item))
      .slice(0, this.k);
  }

  // --- Opening -----------------------------------------------------------------------------------

  /** Opens the bundle, loads the encoders shown, and answers the query. */
  async open(): Promise<void> {
    const attempt = ++this.attempts;
    this.set({ loading: "loading", openFailure: null, statusText: "Loading the engine." });
    try {
      const opened = await session.open(this.values);
      if (attempt !== this.attempts) return;
      this.opened = opened.collection.manifest;
      if (this.wanted) await this.restoreKept(this.wanted, opened.collection.manifest);
      const own = this.isOwn ? this.own.gallery : null;
      // The engine may have been started since the gallery was made.
      await own?.attach();
      const served = await this.servedGallery(opened);
      if (attempt !== this.attempts) return;
      this.served = served;
      const bundle = own?.bundle ?? served?.bundle ?? opened;
      if (bundle !== this.bundle) {
        this.set({ bundle, answers: [] });
        this.takeFromAddress();
        // Drawing requests the visible thumbnails, which should load before the encoder.
        await this.host.updateComplete;
      }
      for (const encoder of this.encodersShown()) await session.encoder(encoder);
      if (attempt !== this.attempts) return;
      this.set({ loading: "ready", statusText: "Ready." });
      await this.run();
    } catch (error) {
      // The reader chose another back end, or a new worker took over: another attempt is running.
      if (attempt !== this.attempts) return;
      const statusText = "The gallery could not be opened.";
      this.set({ loading: "error", openFailure: toFailure(error), statusText });
    }
  }

  /** The gallery of the server, if the bundle is a sample of it. */
  private async servedGallery(opened: OpenBundle): Promise<ServedGallery | null> {
    if (this.served?.sample === opened) return this.served;
    const { bundle } = this.values;
    const bundles = await this.index.catch(() => []);
    const isSample = bundles.some(({ path, sample }) => sample && isSameBundle(path, bundle));
    if (!isSample) return null;
    const { ServedGallery } = await import("../served/served-gallery.js");
    return ServedGallery.open(opened);
  }

  /** Whether the server searches, and not the page. */
  get isServed(): boolean {
    return this.served !== null && !this.isOwn;
  }

  /** Reads a kept gallery for the bundle that was opened. If it cannot be used, the bundle is shown. */
  private async restoreKept(kept: Kept, base: Manifest): Promise<void> {
    const { bundle, backend } = this.values;
    this.wanted = null;
    try {
      await this.own.restore(kept, { bundle, backend }, base);
      this.isOwn = true;
      void this.own.measure();
    } catch (error) {
      const reason = toFailure(error);
      // The engine is gone, and the next one tries again.
      if (isStopped(reason)) this.wanted = kept;
      else this.own.refuse(reason, kept);
    }
  }

  /** Shows what another address names. */
  private restore(): void {
    this.isOwn = false;
    this.wanted = null;
    void session.open(this.values).then(
      (bundle) => {
        if ((this.served?.sample === bundle ? this.served.bundle : bundle) !== this.bundle) return this.open();
        this.takeFromAddress();
        return this.run();
      },
      () => this.open(),
    );
  }

  private takeFromAddress(): void {
    // The reader's own picture can be asked for in any gallery, but its labels are those of one.
    const picture = this.query?.kind === "image" && this.values.q === null ? { ...this.query, labels: null } : null;
    this.set({ shown: this.firstShown() });
    const query = (this.embedsPictures ? picture : null) ?? this.firstQuery();
    const isSame = query?.kind === "item" && this.query?.kind === "item" && query.item === this.query.item;
    if (!isSame) this.set({ query });
  }

  // --- Galleries ---------------------------------------------------------------------------------

  /** The open bundle, as the address names it. */
  get bundlePath(): string {
    return this.values.bundle;
  }

  /** Opens another bundle. The reader's own picture stays the query. */
  chooseBundle(path: string): void {
    if (!this.isOwn && isSameBundle(path, this.bundlePath)) return;
    this.change(path, false);
  }

  /** Shows a gallery of the reader's own, with the bundle whose encoders embed it. */
  chooseOwn(gallery: OwnGallery): void {
    this.own.gallery = gallery;
    this.change(gallery.source.bundle, true);
  }

  /** Shows a kept gallery: with the open bundle if its encoder embedded it, else with the bundle that it was made with. */
  chooseKept(kept: Kept): void {
    const opened = this.own.opened(kept.key);
    if (opened) {
      this.chooseOwn(opened);
      return;
    }
    const { name, bundle, bundleTitle } = kept.gallery;
    const fits = this.opened !== null && OwnGallery.fits(kept, this.opened);
    if (!fits && isLocal(bundle) && !isOpenLocal(bundle)) {
      const reason = `“${name}” was embedded with an encoder of “${bundleTitle}”, a bundle on this device that is not open`;
      this.own.refuse(
        failure("store", reason, "open that bundle under “Open another bundle”, and choose the gallery again"),
        kept,
      );
      return;
    }
    this.change(fits ? this.bundlePath : bundle, false, kept);
  }

  /** Shows the bundle after a gallery of the reader's own was removed. */
  leaveOwn(): void {
    this.change(this.bundlePath, false);
  }

  private change(bundle: string, isOwn: boolean, wanted: Kept | null = null): void {
    this.wanted = wanted;
    this.own.clear();
    this.address?.set({ bundle, q: null, k: PAGE, look: "", class: "" });
    this.embeddings.clear();
    this.set({ isOwn, bundle: null, answers: [], queryFailure: null });
    void this.open();
  }

  refuseFolder(name: string): void {
    this.own.refuse(
      failure("bundle", `the folder “${name}” holds no bundle.json`, "choose the folder that `akin export` wrote"),
    );
  }

  /** Opens a bundle in a folder on the reader's device. */
  openLocal(title: string, files: ReadonlyMap<string, File>): void {
    const path = addLocal(title, () => files);
    this.set({ bundles: [...this.bundles, { path, title, description: "", sample: false }] });
    this.chooseBundle(path);
  }

  /**
   * Makes a gallery of the reader's own pictures with the encoder shown, and shows it. A folder that holds a bundle is
   * opened instead.
   */
  async makeOwn(chosen: Folder | Promise<Folder>): Promise<void> {
    const folder = await this.own.read(chosen);
    if (!folder) return;
    if (folder.bundle) {
      this.openLocal(folder.name, folder.bundle);
      return;
    }
    const { opened, shown } = this;
    if (!opened || this.loading !== "ready") return;
    if (!this.embedsPictures) {
      this.own.refuse(noEncoder(this.encoderName(shown.encoder)));
      return;
    }
    const { bundle: path, backend } = this.values;
    const source = { bundle: path, backend };
    if (!(await this.own.make(folder, source, opened, shown.encoder))) return;
    this.address?.set({ q: null, k: PAGE, class: "" });
    this.set({ isOwn: true, bundle: this.own.gallery?.bundle ?? null, answers: [], queryFailure: null });
    this.takeFromAddress();
    void this.run();
  }

  /** The encoder that the address names, else the one with the best H-AP. */
  private firstShown(): Shown {
    const hAp = session.entries().map(({ report }) => report?.overall?.h_ap ?? 0);
    const best = hAp.reduce((best, value, index) => (value > (hAp[best] ?? 0) ? index : best), 0);
    const own = this.isOwn ? this.own.gallery : null;
    const isReady = (index: number | null) => index !== null && (own?.has(index) ?? true);
    const named = session.encoderNamed(this.values.encoder);
    const fallback = isReady(best) ? best : session.entries().findIndex((_, index) => isReady(index));
    const encoder = named !== null && isReady(named) ? named : fallback;
    const beside = session.encoderNamed(this.values.compare);
    const compare = isReady(beside) ? beside : null;
    return { encoder, compare: compare === encoder ? null : compare };
  }

  /** The item that the address names, else one from the gallery, so that the page shows an answer at once. */
  private firstQuery(): Query | null {
    const { q } = this.values;
    const collection = this.bundle?.collection;
    if (!collection) return null;
    if (q !== null && q < collection.count && !this.isOwn) return { kind: "item", item: q };
    const samples = collection.samples();
    const item = samples[Math.floor(samples.length / 3)];
    return item === undefined ? null : { kind: "item", item };
  }

  encodersShown(): number[] {
    const { encoder, compare } = this.shown;
    return compare === null ? [encoder] : [encoder, compare];
  }

  encoderName(index: number): string {
    return session.entries()[index]?.name ?? "";
  }

  /** Whether the encoders shown embed pictures. A bundle may hold embeddings alone, without the weights that made them. */
  get embedsPictures(): boolean {
    return this.encodersShown().every((index) => (session.entries()[index]?.weights ?? null) !== null);
  }

  changeBackend(backend: Backend): void {
    this.address?.set({ backend });
    this.embeddings.clear();
    void this.open();
  }

  // --- Searching ---------------------------------------------------------------------------------

  /** The embedding of an image file's bytes, for tests. */
  async embed(encoder: string | number, image: Uint8Array): Promise<number[]> {
    const index = typeof encoder === "number" ? encoder : session.encoderNamed(encoder);
    if (index === null) throw new Error(`the bundle has no encoder ${encoder}`);
    await session.encoder(index);
    const blob = new Blob([image as Uint8Array<ArrayBuffer>]);
    return Array.from((await session.call("embed", { encoder: index, image: blob })).embedding);
  }

  private async run(): Promise<void> {
    const { query } = this;
    const queryNumber = ++this.queryNumber;
    const asked = this.asked ?? performance.now();
    if (!query || this.loading !== "ready") return;
    this.asked = null;
    this.set({ busy: true, queryFailure: null });
    try {
      const answers: Answer[] = [];
      const parts = { decoding: 0, network: 0, search: 0 };
      for (const encoder of this.encodersShown()) answers.push(await this.answer(query, encoder, parts));
      if (queryNumber !== this.queryNumber) return;
      this.set({ answers });
      void this.time(queryNumber, asked, parts);
      this.set({ statusText: this.summary() });
      saveLastRankings(answers.flatMap((answer) => this.lastRanking(answer) ?? []));
      this.lookAtNamed();
    } catch (error) {
      if (queryNumber !== this.queryNumber) return;
      const failure = toFailure(error);
      if (isStopped(failure)) return;
      this.set({ queryFailure: failure, answers: [], timing: null, statusText: "" });
    } finally {
      if (queryNumber === this.queryNumber) this.set({ busy: false });
    }
  }

  /** Shows how long the answer took, once its results are drawn. */
  private async time(queryNumber: number, asked: number, parts: EngineTimes): Promise<void> {
    const started = performance.now();
    await this.host.updateComplete;
    await nextFrame();
    if (queryNumber !== this.queryNumber) return;
    const drawn = performance.now();
    this.set({ timing: { whole: drawn - asked, ...parts, drawing: drawn - started } });
  }

  /**
   * The answer of an encoder. Adds its times to `parts`. If nothing has to be loaded, the engine is asked at once, and the
   * page draws while it answers.
   */
  private async answer(query: Query, encoder: number, parts: EngineTimes): Promise<Answer> {
    if (!session.isReady(this.values, encoder)) {
      // Another view may have opened another bundle since.
      await session.open(this.values);
      await session.encoder(encoder);
    }
    if (this.served && !this.isOwn) return this.askServer(this.served, query, encoder, parts);
    // The results of a class can stand anywhere in the ranking.
    const all = this.classChoice ? (this.bundle?.collection.manifest.gallery.count ?? 0) : 0;
    const k = Math.max(STRIP, this.k, all);
    if (query.kind === "item") {
      const { item } = query;
      const ranking = await session.call("rank", { encoder, k, item, embedding: null, labels: null, own: this.isOwn });
      const { search_ms, ...ranked } = ranking;
      parts.search += search_ms;
      return { encoder, ...ranked };
    }
    const { labels } = query;
    const { search_ms, ...ranked } = await this.rankPicture(query, encoder, k, parts);
    parts.search += search_ms;
    return {
      encoder,
      ...ranked,
      results: this.withKinship(ranked.results, labels ?? (ranked.likeness?.unlike ? null : votedPath(ranked.votes))),
    };
  }

  /** The answer of the server, which gets the embedding of the reader's picture and not the picture. */
  private async askServer(served: ServedGallery, query: Query, encoder: number, parts: EngineTimes): Promise<Answer> {
    const labels = query.kind === "image" ? query.labels : null;
    const asked: ServedQuery =
      query.kind === "item" ? query : { embedding: await this.embeddingOf(query.file, encoder, parts) };
    const started = performance.now();
    const { results, votes, answers, ...ranked } = await served.rank(asked, Math.max(STRIP, this.k), this.classChoice);
    parts.search += performance.now() - started;
    // As in the page, a query that has labels gets no votes.
    if (query.kind === "item") return { encoder, ...ranked, results, votes: null, answers: null };
    const path = labels ?? (ranked.likeness?.unlike ? null : votedPath(votes));
    const kin = this.withKinship(results, path);
    return { encoder, ...ranked, results: kin, votes: labels ? null : votes, answers: labels ? null : answers };
  }

  /** The ranking for the reader's picture, which is embedded if it was not. Adds the times of that to `parts`. */
  private async rankPicture(
    { file, labels }: Query & { kind: "image" },
    encoder: number,
    k: number,
    parts: EngineTimes,
  ): Promise<Searched> {
    const params = { encoder, k, labels, own: this.isOwn };
    const known = this.embeddings.get(encoder);
    if (known) return session.call("rank", { ...params, item: null, embedding: (await known).embedding });
    const asked = session.call("search", { ...params, image: file });
    await this.keepEmbedding(
      encoder,
      asked.then(({ embedded }) => embedded),
      parts,
    );
    return (await asked).ranked;
  }

  /** The embedding of the reader's picture. Adds its times to `parts` if it was not known. */
  private async embeddingOf(image: Blob, encoder: number, parts: EngineTimes): Promise<number[]> {
    const known = this.embeddings.get(encoder);
    if (known) return (await known).embedding;
    return this.keepEmbedding(encoder, session.call("embed", { encoder, image }), parts);
  }

  /** Keeps an embedding that was asked for. If that fails, it can be asked for again. */
  private async keepEmbedding(encoder: number, asked: Promise<Embedded>, parts: EngineTimes): Promise<number[]> {
    const { embeddings } = this;
    embeddings.set(encoder, asked);
    asked.catch(() => embeddings.get(encoder) === asked && embeddings.delete(encoder));
    const { embedding, decode_ms, embed_ms } = await asked;
    parts.decoding += decode_ms;
    parts.network += embed_ms;
    return embedding;
  }

  /** The results with their kinship to the reader's own picture, whose labels are chosen or voted for. */
  private withKinship(results: Result[], path: ArrayLike<number> | null): Result[] {
    const collection = this.bundle?.collection;
    if (!collection || !path) return results;
    return results.map((result) => {
      if (collection.labels(result.item).length === 0) return result;
      const { shared, most } = collection.sharedWithClass(result.item, path);
      return { ...result, shared_level: result.shared_level ?? shared, may_share: result.may_share ?? most };
    });
  }

  /** Shows where the encoder looks at the query and at a result. The dialog is loaded when a reader first asks for it. */
  lookAt(looking: Looking): void {
    const { item, column } = looking;
    // A query that has no place in an address has no result in one.
    if (this.query?.kind === "item" && [this.query.item, item].every((item) => this.hasAddress(item))) {
      this.address?.set({ look: column === 0 ? String(item) : `${item}.${column + 1}` });
    }
    void this.openLook(looking).catch((error: unknown) => this.set({ queryFailure: toFailure(error) }));
  }

  closeLook(): void {
    this.address?.set({ look: "" });
    this.set({ look: null });
  }

  /** Shows the result that the address names, if it is one of this answer. */
  private lookAtNamed(): void {
    const [, item, column = "1"] = /^(\d+)(?:\.([12]))?$/.exec(this.values.look) ?? [];
    const looking = { item: Number(item), column: Number(column) - 1 };
    const isKnown = this.answers[looking.column]?.results.some((result) => result.item === looking.item);
    if (item !== undefined && isKnown && this.embedsPictures) this.lookAt(looking);
    else if (this.look) this.closeLook();
  }

  private async openLook({ item, column }: Looking): Promise<void> {
    const { query, bundle } = this;
    const answer = this.answers[column];
    const place = answer?.results.findIndex((result) => result.item === item) ?? -1;
    const result = answer?.results[place];
    if (!query || !bundle || !answer || !result) return;
    const { codes } = answer;
    const { originalPicture, thumbnailPicture } = await import("../look/picture.js");
    await import("../look/akin-look.js");
    const picture = (item: number) => () => {
      const file = this.isOwn ? this.own.gallery?.file(item) : null;
      return file ? originalPicture(file) : thumbnailPicture(item, bundle);
    };
    const { encoder } = answer;
    this.set({
      look: {
        encoder,
        encoderName: this.encoderName(encoder),
        similarity: session.entries()[encoder]?.report?.config?.similarity ?? "cosine",
        score: result.score,
        codes: codes && { query: codes.query, item: codes.results[place] ?? "" },
        query:
          query.kind === "item"
            ? { name: bundle.collection.name(query.item), picture: picture(query.item) }
            : {
                name: "Your picture",
                picture: () => originalPicture(query.file),
              },
        item: { name: bundle.collection.name(item), picture: picture(item) },
      },
    });
  }

  searchItem(item: number): void {
    this.asked = performance.now();
    this.setQuery({ kind: "item", item });
  }

  searchPicture(file: File): void {
    if (!this.embedsPictures) {
      this.rejectPicture(noEncoder(this.encoderName(this.shown.encoder)));
      return;
    }
    this.asked = performance.now();
    this.setQuery({ kind: "image", name: file.name, file, url: URL.createObjectURL(file), labels: null });
  }

  rejectPicture(queryFailure: Failure): void {
    this.set({ queryFailure });
  }

  private setQuery(query: Query): void {
    if (this.query?.kind === "image") URL.revokeObjectURL(this.query.url);
    this.embeddings = new Map();
    session.ownPicture = query.kind === "image" ? query.name : null;
    this.set({ query });
    // An own picture has no place in an address.
    const q = query.kind === "item" && this.hasAddress(query.item) ? query.item : null;
    this.address?.set({ q, k: PAGE, look: "" });
    void this.run();
  }

  private hasAddress(item: number): boolean {
    return !this.isOwn && (this.served?.hasAddress(item) ?? true);
  }

  /** Sets the labels of the reader's own picture, so that the same ranking gets a score. */
  setLabels(labels: Uint32Array | null): void {
    if (this.query?.kind !== "image") return;
    this.set({ query: { ...this.query, labels } });
    void this.run();
  }

  /** Shows other encoders. Own pictures are first embedded by them, unless the reader cancels that. */
  async show(shown: Shown): Promise<void> {
    const before = this.shown;
    this.set({ shown });
    if (this.isOwn) {
      for (const encoder of this.encodersShown()) {
        if (await this.own.embed(encoder, this.encoderName(encoder))) continue;
        if (this.shown === shown) this.set({ shown: before });
        return;
      }
      if (this.shown !== shown) return;
    }
    this.address?.set({
      encoder: this.encoderName(shown.encoder),
      compare: shown.compare === null ? null : this.encoderName(shown.compare),
    });
    void this.run();
  }

  showMore(): void {
    const k = this.k + PAGE;
    this.address?.set({ k });
    if (k > STRIP) void this.run();
    else this.redraw();
  }

  /** An answer as the playground takes it; null where the kinship is unknown or the levels are too many. */
  lastRanking({ encoder, results }: Answer): LastRanking | null {
    const { collection } = this.bundle ?? {};
    const known = results
      .slice(0, STRIP)
      .flatMap(({ item, shared_level: shared }) => (shared === null ? [] : { item, shared }));
    if (!collection || !this.query || known.length === 0 || collection.depth > MOST_LEVELS) return null;
    return {
      encoder: this.encoderName(encoder),
      query: this.query.kind === "item" ? collection.name(this.query.item) : "your picture",
      levels: [...collection.levels],
      shared: known.map(({ shared }) => shared),
      names: known.map(({ item }) => collection.name(item)),
      of: collection.pictures,
    };
  }

  private summary(): string {
    const collection = this.bundle?.collection;
    if (!collection) return "";
    return this.answers.map((answer) => this.sentenceOf(answer, collection)).join(" ");
  }

  private sentenceOf({ encoder, results, metrics, likeness }: Answer, collection: Collection): string {
    const [first] = results;
    if (this.query?.kind === "image" && !this.query.labels && likeness?.unlike) {
      return `To ${this.encoderName(encoder)} this picture is unlike anything in the gallery.`;
    }
    const hAp = metrics?.overall["h_ap"];
    const scored = hAp === undefined ? "" : `: H-AP ${format.score(hAp)}`;
    const kin = !first || first.shared_level === null ? "" : `, ${relation(first.shared_level, collection.levels)}`;
    const nearest = first ? `The first result is ${collection.name(first.item)}${kin}.` : "";
    return `Ranked by ${this.encoderName(encoder)}${scored}. ${nearest}`;
  }

  private set(state: Partial<Pick<SearchController, State>>): void {
    Object.assign(this, state);
    this.redraw();
  }
}

/** Resolves after the next frame. A page that nobody sees draws none, and does not wait. */
const nextFrame = (): Promise<void> =>
  new Promise((resolve) => {
    if (document.hidden) resolve();
    else requestAnimationFrame(() => setTimeout(resolve));
  });

/** What the host draws. */
type State =
  | "bundles"
  | "isOwn"
  | "loading"
  | "openFailure"
  | "bundle"
  | "shown"
  | "query"
  | "queryFailure"
  | "answers"
  | "timing"
  | "busy"
  | "look"
  | "statusText";

/** The classes that the neighbours vote for, coarse to fine. */
function votedPath(votes: Vote[] | null): number[] | null {
  return votes ? [...votes].sort((a, b) => a.level - b.level).map((vote) => vote.class) : null;
}

/** Why a picture of the reader's own cannot be embedded. */
const noEncoder = (name: string): Failure =>
  failure(
    "encoder",
    `this gallery holds the embeddings ${name}, but not the encoder that made them, so no other picture can be compared with them`,
    "search with a picture of the gallery, or open a bundle that has its encoder",
  );
