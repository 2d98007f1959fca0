// <akin-app>: the search tool. It holds the state (bundle, view, query, answers) and draws it with the
// elements beside it.
//
// What tests may rely on:
//   [data-testid=status]    data-state="loading | ready | error"; screen readers read its text
//   [data-testid=progress]  while loading: li[data-phase][data-state=waiting|running|done]
//   [data-testid=notice]    an error, with data-code
//   [data-testid=backend]   data-backend="webgpu | cpu"; inside: [data-testid=backend-reason],
//                           [data-timing=decode|embed|search] with data-value in milliseconds
//   [data-testid=encoders]  radio buttons by encoder name, and [data-testid=compare] for side by side
//   [data-testid=file]      the file input
//   .samples [data-item]    buttons that make an item the query; [data-testid=random]
//   [data-testid=query]     data-query="item:N | image:NAME"
//   [data-testid=ranking]   one for each encoder shown, with data-encoder, data-query, aria-busy; inside:
//   [data-testid=results]   li[data-item][data-shared-level][data-score], in ranked order; data-encoder
//   [data-testid=more]      shows more results
//   [data-metric][data-encoder]  data-value in full precision ("" for none): h_ap, ndcg, asi,
//                           ap-LEVEL and recall_at_1-LEVEL with levels from 1, the coarsest
//   [data-testid=votes]     for a picture without labels: tr[data-vote=LEVEL][data-class][data-value]
//   select[data-level]      the class of the reader's own picture at each level
//   [data-testid=report]    the encoders' means over all queries
//   window.akin.embed       see page.ts

import { html, nothing, type PropertyValues } from "lit";
import { state } from "lit/decorators.js";
import { bundleAddress, type AddressState, type COMMON } from "../address.js";
import { Client, type PhaseProgress } from "../client.js";
import { Collection } from "../collection.js";
import { toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation, sharedLevel } from "../kinship.js";
import type { Backend, Embedded, Metrics, Phase, Result, Running, Vote } from "../protocol.js";
import { moveFocus, setTabStop } from "../roving.js";
import { Sprites } from "../sprites.js";
import type { parameters } from "../views/search.js";
import { backendBadge, type Timing } from "./backend-badge.js";
import { encoderSwitch, type View } from "./encoder-switch.js";
import "./file-entry.js";
import { kinLegend } from "./kin-legend.js";
import { LightElement } from "./light.js";
import { loadProgress } from "./load-progress.js";
import { metricTable } from "./metric-table.js";
import { modelCard } from "./model-card.js";
import { modelTable } from "./model-table.js";
import { notice } from "./notice.js";
import { queryCard, queryKey, type Query } from "./query-card.js";
import { rankStrip } from "./rank-strip.js";
import { resultCard } from "./result-card.js";
import "./sample-picker.js";

/** The answer of one encoder to the query. */
interface Answer {
  encoder: number;
  results: Result[];
  metrics: Metrics | null;
  votes: Vote[] | null;
  timing: Timing;
}

/** The number of results shown at first, and added by each “Show more”. */
export const PAGE = 24;
/** The number of results in the strip, however many cards are shown. */
const STRIP = 100;
/** After more restarts than this, the page waits until the reader tries again. */
const MAX_RESTARTS = 2;

export class AkinApp extends LightElement {
  @state() private accessor loading: "loading" | "ready" | "error" = "loading";
  @state() private accessor openFailure: Failure | null = null;
  @state() private accessor phases: ReadonlyMap<Phase, PhaseProgress> = new Map();
  @state() private accessor running: Running | null = null;
  @state() private accessor collection: Collection | null = null;
  @state() private accessor view: View = { encoder: 0, compare: null };
  @state() private accessor query: Query | null = null;
  @state() private accessor queryFailure: Failure | null = null;
  @state() private accessor answers: Answer[] = [];
  @state() private accessor busy = false;
  @state() private accessor loadingEncoder: string | null = null;
  @state() private accessor statusText = "Loading the engine.";

  private address!: AddressState<typeof parameters & typeof COMMON>;
  /** The full address of the bundle. */
  private bundle = "";
  private sprites: Sprites | null = null;
  private readonly loads = new Map<number, Promise<unknown>>();
  /** The embeddings of the reader's own picture, by encoder. */
  private embeddings = new Map<number, Promise<Embedded>>();
  private queryNumber = 0;
  private attempts = 0;
  private restarts = 0;
  private readonly client = new Client({
    progress: (phases) => (this.phases = phases),
    running: (running) => (this.running = running),
    died: (failure) => void this.restart(failure),
  });

  override connectedCallback(): void {
    // Removes the text for readers without scripts.
    this.replaceChildren();
    super.connectedCallback();
  }

  /** Opens the bundle that the address names. */
  start(address: AddressState<typeof parameters & typeof COMMON>): void {
    this.address = address;
    address.onRestore(() => this.restore());
    void this.open(null);
  }

  /** Shows what another address names. */
  private restore(): void {
    if (bundleAddress(this.address.values.bundle) !== this.bundle) {
      location.reload();
      return;
    }
    this.view = this.firstView();
    this.query = this.firstQuery();
    void this.run();
  }

  /** The embedding of an image file's bytes, for tests. */
  async embed(encoder: string | number, image: Uint8Array): Promise<number[]> {
    const index = typeof encoder === "number" ? encoder : this.encoderNamed(encoder);
    if (index === null) throw new Error(`the bundle has no encoder ${encoder}`);
    await this.loadEncoder(index);
    return Array.from((await this.client.call("embed", { encoder: index, image })).embedding);
  }

  // --- Loading ---------------------------------------------------------------------------------

  /** Opens the bundle. With `cpuReason`, the reason why WebGPU is not used, only on the CPU. */
  private async open(cpuReason: string | null): Promise<void> {
    const attempt = ++this.attempts;
    this.loading = "loading";
    this.openFailure = null;
    this.statusText = "Loading the engine.";
    this.phases = new Map();
    this.loads.clear();
    try {
      const bundle = bundleAddress(this.address.values.bundle);
      this.bundle = bundle;
      const { manifest, labels, running } = await this.client.call("open", {
        bundle,
        backend: this.address.values.backend,
        cpuReason,
      });
      this.running = running;
      if (!this.collection) {
        this.collection = new Collection(manifest, labels);
        this.sprites = new Sprites(this.client, manifest.thumbnails);
        this.view = this.firstView();
        this.query = this.firstQuery();
        // Drawing requests the visible thumbnails, which should load before the encoder.
        await this.updateComplete;
      }
      for (const encoder of this.shown()) await this.loadEncoder(encoder);
      if (attempt !== this.attempts) return;
      this.loading = "ready";
      this.statusText = "Ready.";
      await this.run();
    } catch (error) {
      // The reader chose another back end, or a new worker took over: another attempt is running.
      if (attempt !== this.attempts) return;
      this.openFailure = toFailure(error);
      this.loading = "error";
      this.statusText = "The gallery could not be opened.";
    }
  }

  /** The encoder that the address names, else the one with the best H-AP. */
  private firstView(): View {
    const encoders = this.encoders();
    const hAp = (index: number) => encoders[index]?.report?.overall?.h_ap ?? 0;
    const best = encoders.reduce((best, _, index) => (hAp(index) > hAp(best) ? index : best), 0);
    const encoder = this.encoderNamed(this.address.values.encoder) ?? best;
    const compare = this.encoderNamed(this.address.values.compare);
    return { encoder, compare: compare === encoder ? null : compare };
  }

  /** The item that the address names, else one from the gallery, so that the page shows an answer at once. */
  private firstQuery(): Query | null {
    const { q } = this.address.values;
    const { collection } = this;
    if (!collection) return null;
    if (q !== null && q < collection.count) return { kind: "item", item: q };
    const samples = collection.samples();
    const item = samples[Math.floor(samples.length / 3)];
    return item === undefined ? null : { kind: "item", item };
  }

  private encoders() {
    return this.collection?.manifest.encoders ?? [];
  }

  private encoderNamed(name: string | null): number | null {
    const index = this.encoders().findIndex((encoder) => encoder.name === name);
    return index < 0 ? null : index;
  }

  private encoderName(index: number): string {
    return this.encoders()[index]?.name ?? "";
  }

  private shown(): number[] {
    const { encoder, compare } = this.view;
    return compare === null ? [encoder] : [encoder, compare];
  }

  /** Loads an encoder, unless it is loaded or loading. */
  private loadEncoder(index: number): Promise<unknown> {
    let load = this.loads.get(index);
    if (!load) {
      if (this.loading === "ready") this.loadingEncoder = this.encoderName(index);
      load = this.client.call("encoder", { index }).finally(() => (this.loadingEncoder = null));
      load.catch(() => this.loads.delete(index));
      this.loads.set(index, load);
    }
    return load;
  }

  /** After the worker has died: opens the bundle in a new one, on the CPU, and answers the same query. */
  private async restart(failure: Failure): Promise<void> {
    this.embeddings.clear();
    if (++this.restarts > MAX_RESTARTS) {
      this.openFailure = failure;
      this.loading = "error";
      return;
    }
    await this.open(`The engine was restarted because ${failure.message}.`);
  }

  private changeBackend(backend: Backend): void {
    this.client.stop({ code: "stopped", message: "another back end was chosen", hint: "" });
    this.address.set({ backend });
    this.embeddings.clear();
    void this.open(null);
  }

  // --- Searching -------------------------------------------------------------------------------

  private async run(): Promise<void> {
    const { query } = this;
    const queryNumber = ++this.queryNumber;
    if (!query || this.loading !== "ready") return;
    this.busy = true;
    this.queryFailure = null;
    try {
      const answers: Answer[] = [];
      for (const encoder of this.shown()) answers.push(await this.answer(query, encoder));
      if (queryNumber !== this.queryNumber) return;
      this.answers = answers;
      this.statusText = this.summary();
    } catch (error) {
      if (queryNumber !== this.queryNumber) return;
      const failure = toFailure(error);
      if (failure.code === "stopped" || failure.code === "worker") return;
      this.queryFailure = failure;
      this.answers = [];
      this.statusText = "";
    } finally {
      if (queryNumber === this.queryNumber) this.busy = false;
    }
  }

  private async answer(query: Query, encoder: number): Promise<Answer> {
    await this.loadEncoder(encoder);
    const k = Math.max(STRIP, this.address.values.k);
    if (query.kind === "item") {
      const { search_ms, ...ranked } = await this.client.call("rank", {
        encoder,
        k,
        item: query.item,
        embedding: null,
        labels: null,
      });
      return { encoder, ...ranked, timing: { decode: null, embed: null, search: search_ms } };
    }
    let embedding = this.embeddings.get(encoder);
    if (!embedding) {
      embedding = this.client.call("embed", { encoder, image: query.bytes });
      this.embeddings.set(encoder, embedding);
      const pending = embedding;
      pending.catch(() => this.embeddings.get(encoder) === pending && this.embeddings.delete(encoder));
    }
    const { embedding: vector, decode_ms, embed_ms } = await embedding;
    const { search_ms, ...ranked } = await this.client.call("rank", {
      encoder,
      k,
      item: null,
      embedding: vector,
      labels: query.labels,
    });
    return {
      encoder,
      ...ranked,
      results: this.withKinship(ranked.results, query.labels ?? votedPath(ranked.votes)),
      timing: { decode: decode_ms, embed: embed_ms, search: search_ms },
    };
  }

  /** The results with their kinship to the reader's own picture, whose labels are chosen or voted for. */
  private withKinship(results: Result[], path: ArrayLike<number> | null): Result[] {
    const { collection } = this;
    if (!collection || !path) return results;
    return results.map((result) => ({
      ...result,
      shared_level: result.shared_level ?? sharedLevel(path, collection.labels(result.item)),
    }));
  }

  private searchItem(item: number, moveFocus: boolean): void {
    this.setQuery({ kind: "item", item });
    if (!moveFocus) return;
    void this.updateComplete.then(() => {
      this.querySelector<HTMLElement>("#query-title")?.focus({ preventScroll: true });
      this.querySelector(".answer")?.scrollIntoView({ block: "start" });
    });
  }

  private async searchPicture(file: File): Promise<void> {
    const bytes = new Uint8Array(await file.arrayBuffer());
    this.setQuery({ kind: "image", name: file.name, bytes, url: URL.createObjectURL(file), labels: null });
  }

  private setQuery(query: Query): void {
    if (this.query?.kind === "image" && this.query.url !== (query as { url?: string }).url)
      URL.revokeObjectURL(this.query.url);
    this.embeddings = new Map();
    this.query = query;
    this.address.set({ q: query.kind === "item" ? query.item : null, k: PAGE });
    void this.run();
  }

  /** Sets the labels of the reader's own picture, so that the same ranking gets a score. */
  private setLabels(labels: Uint32Array | null): void {
    if (this.query?.kind !== "image") return;
    this.query = { ...this.query, labels };
    void this.run();
  }

  private changeView(view: View): void {
    this.view = view;
    this.address.set({
      encoder: this.encoderName(view.encoder),
      compare: view.compare === null ? null : this.encoderName(view.compare),
    });
    void this.run();
  }

  private more(): void {
    const k = this.address.values.k + PAGE;
    this.address.set({ k });
    if (k > STRIP) void this.run();
    else this.requestUpdate();
  }

  private summary(): string {
    const { collection } = this;
    if (!collection) return "";
    return this.answers
      .map(({ encoder, results, metrics }) => {
        const first = results[0];
        const scored = metrics ? `: H-AP ${format.score(metrics.h_ap)}` : "";
        const kin = !first || first.shared_level === null ? "" : `, ${relation(first.shared_level, collection.levels)}`;
        return `Ranked by ${this.encoderName(encoder)}${scored}. ${first ? `The first result is ${collection.name(first.item)}${kin}.` : ""}`;
      })
      .join(" ");
  }

  // --- Drawing ---------------------------------------------------------------------------------

  override render() {
    return html`<p class="status" role="status" data-testid="status" data-state=${this.loading}>${this.statusText}</p>
      ${this.loading === "error" && this.openFailure ? this.failureNotice(this.openFailure) : nothing}
      ${this.loading === "loading" ? this.loadingNotice() : nothing}
      ${this.collection && this.loading !== "error" ? this.tool(this.collection) : nothing}`;
  }

  protected override updated(_changed: PropertyValues): void {
    for (const list of this.querySelectorAll(".results")) setTabStop(list);
  }

  private failureNotice(failure: Failure) {
    return notice(failure, "The gallery could not be opened", { label: "Try again", run: () => void this.open(null) });
  }

  private loadingNotice() {
    return html`<section class="waiting" aria-label="Loading">
      <p class="waiting-title">
        ${this.collection ? `Opening ${this.collection.manifest.title}` : "Loading the engine"}
      </p>
      ${loadProgress(this.phases)}
    </section>`;
  }

  private tool(collection: Collection) {
    const { manifest } = collection;
    return html`<header class="bundle">
        <h3 class="bundle-title">${manifest.title}</h3>
        <p class="soft">
          ${format.count(manifest.gallery.count, "picture")}, ${format.count(collection.depth, "level")}:
          ${collection.levels.join(" › ")}. ${manifest.description}
        </p>
      </header>
      <section class="ask" aria-label="Query">
        <akin-file
          @picture=${(event: CustomEvent<File>) => void this.searchPicture(event.detail)}
          @reject=${(event: CustomEvent<Failure>) => (this.queryFailure = event.detail)}
        ></akin-file>
        <akin-samples
          .collection=${collection}
          .sprites=${this.sprites}
          .chosen=${this.query?.kind === "item" ? this.query.item : null}
          @choose=${(event: CustomEvent<number>) => this.searchItem(event.detail, false)}
        ></akin-samples>
      </section>
      <div class="bar">
        ${encoderSwitch(manifest.encoders, this.view, (view) => this.changeView(view))}
        ${this.running ? backendBadge(this.running, this.timing(), (backend) => this.changeBackend(backend)) : nothing}
      </div>
      ${
        this.loadingEncoder
          ? html`<section class="waiting" aria-label="Loading">
              <p class="waiting-title">Loading ${this.loadingEncoder}</p>
              ${loadProgress(this.phases)}
            </section>`
          : nothing
      }
      ${this.queryFailure ? notice(this.queryFailure, this.failureTitle(this.queryFailure)) : nothing}
      ${this.answerPanel(collection)} ${this.about(collection)}`;
  }

  /** The times of the first column; those of the second differ little. */
  private timing(): Timing | null {
    return this.answers[0]?.timing ?? null;
  }

  private failureTitle({ code }: Failure): string {
    if (code !== "image") return "This query could not be answered";
    return this.query?.kind === "image" ? `“${this.query.name}” cannot be read` : "This cannot be used as a query";
  }

  private answerPanel(collection: Collection) {
    const { query, sprites, answers } = this;
    if (this.queryFailure && answers.length === 0) return nothing;
    if (!query || !sprites) {
      return html`<p class="empty">
        There is no query yet. Drop a picture anywhere on this page, or choose one above.
      </p>`;
    }
    const scored = answers.filter((answer) => answer.metrics);
    const votes = answers.filter((answer) => answer.votes);
    const columns = scored.flatMap(({ encoder, metrics }) =>
      metrics ? [{ encoder: this.encoderName(encoder), metrics }] : [],
    );
    return html`<section class="answer" aria-label="Answer" data-columns=${this.shown().length}>
      ${queryCard(
        query,
        collection,
        sprites,
        votes.map(({ encoder, votes }) => ({ encoder: this.encoderName(encoder), votes: votes ?? [] })),
        (event) => this.setLabels(event.detail),
      )}
      <div
        class="rankings"
        @click=${this.chooseResult}
        @pointerover=${this.markPointed}
        @pointerleave=${this.unmarkPointed}
        @focusin=${this.markPointed}
        @focusout=${this.unmarkPointed}
      >
        ${kinLegend(collection.levels)}
        <div class="columns">${answers.map((answer) => this.ranking(answer, query, collection, sprites))}</div>
        ${this.moreButton(collection)}
      </div>
      <div class="scores">${metricTable(columns, collection.levels)}</div>
    </section>`;
  }

  private ranking({ encoder, results, metrics }: Answer, query: Query, collection: Collection, sprites: Sprites) {
    const name = this.encoderName(encoder);
    return html`<section
      class="ranking"
      data-testid="ranking"
      data-encoder=${name}
      data-query=${queryKey(query)}
      aria-busy=${this.busy}
      aria-label=${`Ranked by ${name}`}
    >
      <header class="ranking-head">
        <div>
          <p class="eyebrow">Ranked by</p>
          <h3>${name}</h3>
        </div>
        ${metrics ? html`<p class="ranking-score"><span class="soft">H-AP</span> <span class="number">${format.score(metrics.h_ap)}</span></p>` : nothing}
      </header>
      ${rankStrip(results.slice(0, STRIP), collection.levels)}
      <ol
        class="results"
        data-testid="results"
        data-encoder=${name}
        aria-label=${`Results of ${name}, best first`}
        @keydown=${moveFocus}
      >
        ${results.slice(0, this.address.values.k).map((result, index) => resultCard(result, index + 1, collection, sprites))}
      </ol>
    </section>`;
  }

  private moreButton(collection: Collection) {
    const shown = Math.min(this.address.values.k, this.answers[0]?.results.length ?? 0);
    if (shown === 0 || shown >= collection.manifest.gallery.count - 1) return nothing;
    return html`<p class="more">
      <button type="button" class="button" data-testid="more" ?disabled=${this.busy} @click=${this.more}>
        Show ${PAGE} more
      </button>
    </p>`;
  }

  private about(collection: Collection) {
    const { manifest } = collection;
    return html`<section class="about" aria-labelledby="about-title">
      <h2 id="about-title">About these encoders</h2>
      <div class="about-columns">
        <div>
          <p>
            A single ranking can be lucky. These are the means over all queries of the bundle, measured when it was
            exported.
          </p>
          <dl class="encoders">
            ${manifest.encoders.map(
              ({ name, description, dimension }) =>
                html`<div>
                  <dt>${name}</dt>
                  <dd>${description} <span class="soft">A picture becomes ${dimension} numbers.</span></dd>
                </div>`,
            )}
          </dl>
          <p><span class="soft">Licence of the bundle</span> ${manifest.licence}</p>
          ${
            manifest.model_card
              ? html`<details class="card" data-testid="model-card">
                  <summary>Model card</summary>
                  <div class="card-text">${modelCard(manifest.model_card)}</div>
                </details>`
              : nothing
          }
        </div>
        ${modelTable(manifest.encoders, collection.levels)}
      </div>
    </section>`;
  }

  // --- Pointer ---------------------------------------------------------------------------------

  private chooseResult(event: Event): void {
    const item = (event.target as Element).closest<HTMLElement>("[data-query-item]")?.dataset["queryItem"];
    if (item !== undefined) this.searchItem(Number(item), true);
  }

  /** Marks the item under the pointer in the strip and in the other ranking. */
  private markPointed(event: Event): void {
    const pointed = (event.target as Element).closest<HTMLElement>("[data-item], [data-cell]");
    this.unmarkPointed();
    const item = pointed?.dataset["item"] ?? pointed?.dataset["cell"];
    if (item === undefined) return;
    for (const element of this.querySelectorAll(`.rankings [data-item="${item}"], .rankings [data-cell="${item}"]`)) {
      element.classList.add("pointed");
    }
  }

  private unmarkPointed(): void {
    for (const element of this.querySelectorAll(".pointed")) element.classList.remove("pointed");
  }
}
customElements.define("akin-app", AkinApp);

/** The classes that the neighbours vote for, coarse to fine. */
function votedPath(votes: Vote[] | null): number[] | null {
  return votes ? [...votes].sort((a, b) => a.level - b.level).map((vote) => vote.class) : null;
}
