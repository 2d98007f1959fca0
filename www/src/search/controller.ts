// The state of the search: the query, the encoders shown, and their answers. It asks the session, and its
// host draws it.

import type { ReactiveController, ReactiveControllerHost } from "lit";
import type { AddressState, COMMON, Values } from "../address.js";
import type { Collection } from "../collection.js";
import { toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation, sharedLevel } from "../kinship.js";
import type { Backend, Embedded, Metrics, Result, Vote } from "../protocol.js";
import { isStopped, session, type OpenBundle } from "../session.js";
import type { Timing } from "./backend-badge.js";
import type { Shown } from "./encoder-switch.js";
import { PAGE, type parameters } from "./parameters.js";
import type { Query } from "./query-card.js";

/** The answer of one encoder to the query. */
export interface Answer {
  encoder: number;
  results: Result[];
  metrics: Metrics | null;
  votes: Vote[] | null;
  timing: Timing;
}

/** The number of results in the strip, however many cards are shown. */
export const STRIP = 100;

type Parameters = typeof parameters & typeof COMMON;

export class SearchController implements ReactiveController {
  loading: "loading" | "ready" | "error" = "loading";
  openFailure: Failure | null = null;
  bundle: OpenBundle | null = null;
  shown: Shown = { encoder: 0, compare: null };
  query: Query | null = null;
  queryFailure: Failure | null = null;
  answers: Answer[] = [];
  busy = false;
  statusText = "Loading the engine.";

  private address: AddressState<Parameters> | null = null;
  /** The embeddings of the reader's own picture, by encoder. */
  private embeddings = new Map<number, Promise<Embedded>>();
  private queryNumber = 0;
  private attempts = 0;

  constructor(private readonly host: ReactiveControllerHost) {
    host.addController(this);
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
    void this.open();
  }

  private readonly redraw = (): void => this.host.requestUpdate();

  private readonly reopen = (): void => {
    this.embeddings.clear();
    if (this.address) void this.open();
  };

  private get values(): Readonly<Values<Parameters>> {
    if (!this.address) throw new Error("the search has not been started");
    return this.address.values;
  }

  /** The number of results to show. */
  get k(): number {
    return this.values.k;
  }

  // --- Opening -----------------------------------------------------------------------------------

  /** Opens the bundle, loads the encoders shown, and answers the query. */
  async open(): Promise<void> {
    const attempt = ++this.attempts;
    this.set({ loading: "loading", openFailure: null, statusText: "Loading the engine." });
    try {
      const bundle = await session.open(this.values);
      if (attempt !== this.attempts) return;
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

  /** Shows what another address names. */
  private restore(): void {
    void session.open(this.values).then(
      (bundle) => {
        if (bundle !== this.bundle) return this.open();
        this.takeFromAddress();
        return this.run();
      },
      () => this.open(),
    );
  }

  private takeFromAddress(): void {
    const query = this.firstQuery();
    const isSame = query?.kind === "item" && this.query?.kind === "item" && query.item === this.query.item;
    this.set({ shown: this.firstShown(), ...(isSame ? {} : { query }) });
  }

  /** The encoder that the address names, else the one with the best H-AP. */
  private firstShown(): Shown {
    const hAp = session.entries().map(({ report }) => report?.overall?.h_ap ?? 0);
    const best = hAp.reduce((best, value, index) => (value > (hAp[best] ?? 0) ? index : best), 0);
    const encoder = session.encoderNamed(this.values.encoder) ?? best;
    const compare = session.encoderNamed(this.values.compare);
    return { encoder, compare: compare === encoder ? null : compare };
  }

  /** The item that the address names, else one from the gallery, so that the page shows an answer at once. */
  private firstQuery(): Query | null {
    const { q } = this.values;
    const collection = this.bundle?.collection;
    if (!collection) return null;
    if (q !== null && q < collection.count) return { kind: "item", item: q };
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
    return Array.from((await session.call("embed", { encoder: index, image })).embedding);
  }

  private async run(): Promise<void> {
    const { query } = this;
    const queryNumber = ++this.queryNumber;
    if (!query || this.loading !== "ready") return;
    this.set({ busy: true, queryFailure: null });
    try {
      const answers: Answer[] = [];
      for (const encoder of this.encodersShown()) answers.push(await this.answer(query, encoder));
      if (queryNumber !== this.queryNumber) return;
      this.set({ answers });
      this.set({ statusText: this.summary() });
    } catch (error) {
      if (queryNumber !== this.queryNumber) return;
      const failure = toFailure(error);
      if (isStopped(failure)) return;
      this.set({ queryFailure: failure, answers: [], statusText: "" });
    } finally {
      if (queryNumber === this.queryNumber) this.set({ busy: false });
    }
  }

  private async answer(query: Query, encoder: number): Promise<Answer> {
    await session.encoder(encoder);
    const k = Math.max(STRIP, this.k);
    if (query.kind === "item") {
      const { item } = query;
      const ranking = await session.call("rank", { encoder, k, item, embedding: null, labels: null, own: false });
      const { search_ms, ...ranked } = ranking;
      return { encoder, ...ranked, timing: { decode: null, embed: null, search: search_ms } };
    }
    const { embedding, decode_ms, embed_ms } = await this.embeddingOf(query.bytes, encoder);
    const { labels } = query;
    const { search_ms, ...ranked } = await session.call("rank", {
      encoder,
      k,
      item: null,
      embedding,
      labels,
      own: false,
    });
    return {
      encoder,
      ...ranked,
      results: this.withKinship(ranked.results, labels ?? votedPath(ranked.votes)),
      timing: { decode: decode_ms, embed: embed_ms, search: search_ms },
    };
  }

  private embeddingOf(image: Uint8Array, encoder: number): Promise<Embedded> {
    const known = this.embeddings.get(encoder);
    if (known) return known;
    const embedding = session.call("embed", { encoder, image });
    this.embeddings.set(encoder, embedding);
    embedding.catch(() => this.embeddings.get(encoder) === embedding && this.embeddings.delete(encoder));
    return embedding;
  }

  /** The results with their kinship to the reader's own picture, whose labels are chosen or voted for. */
  private withKinship(results: Result[], path: ArrayLike<number> | null): Result[] {
    const collection = this.bundle?.collection;
    if (!collection || !path) return results;
    return results.map((result) => ({
      ...result,
      shared_level: result.shared_level ?? sharedLevel(path, collection.labels(result.item)),
    }));
  }

  searchItem(item: number): void {
    this.setQuery({ kind: "item", item });
  }

  async searchPicture(file: File): Promise<void> {
    const bytes = new Uint8Array(await file.arrayBuffer());
    this.setQuery({ kind: "image", name: file.name, bytes, url: URL.createObjectURL(file), labels: null });
  }

  rejectPicture(queryFailure: Failure): void {
    this.set({ queryFailure });
  }

  private setQuery(query: Query): void {
    if (this.query?.kind === "image") URL.revokeObjectURL(this.query.url);
    this.embeddings = new Map();
    this.set({ query });
    this.address?.set({ q: query.kind === "item" ? query.item : null, k: PAGE });
    void this.run();
  }

  /** Sets the labels of the reader's own picture, so that the same ranking gets a score. */
  setLabels(labels: Uint32Array | null): void {
    if (this.query?.kind !== "image") return;
    this.set({ query: { ...this.query, labels } });
    void this.run();
  }

  show(shown: Shown): void {
    this.set({ shown });
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

  private summary(): string {
    const collection = this.bundle?.collection;
    if (!collection) return "";
    return this.answers.map((answer) => this.sentenceOf(answer, collection)).join(" ");
  }

  private sentenceOf({ encoder, results, metrics }: Answer, collection: Collection): string {
    const [first] = results;
    const scored = metrics ? `: H-AP ${format.score(metrics.h_ap)}` : "";
    const kin = !first || first.shared_level === null ? "" : `, ${relation(first.shared_level, collection.levels)}`;
    const nearest = first ? `The first result is ${collection.name(first.item)}${kin}.` : "";
    return `Ranked by ${this.encoderName(encoder)}${scored}. ${nearest}`;
  }

  private set(state: Partial<Pick<SearchController, State>>): void {
    Object.assign(this, state);
    this.redraw();
  }
}

/** What the host draws. */
type State =
  "loading" | "openFailure" | "bundle" | "shown" | "query" | "queryFailure" | "answers" | "busy" | "statusText";

/** The classes that the neighbours vote for, coarse to fine. */
function votedPath(votes: Vote[] | null): number[] | null {
  return votes ? [...votes].sort((a, b) => a.level - b.level).map((vote) => vote.class) : null;
}
