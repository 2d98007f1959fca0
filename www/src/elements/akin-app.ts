// <akin-app>: the tool. It holds the state (bundle, view, query, answers) and draws it with the
// small parts beside it.
//
// What tests may hold on to:
//   [data-testid=status]    data-state="loading | ready | error"; its text is what screen readers hear
//   [data-testid=progress]  while loading: li[data-phase][data-state=waiting|running|done]
//   [data-testid=notice]    an error, with data-code
//   [data-testid=backend]   data-backend="webgpu | cpu"; inside: [data-testid=backend-reason],
//                           [data-timing=decode|embed|search] with data-value in milliseconds
//   [data-testid=encoders]  radio buttons by encoder name, and [data-testid=compare] for side by side
//   [data-testid=file]      the file input
//   .samples [data-item]    buttons that ask with a stored item; [data-testid=random]
//   [data-testid=query]     data-query="item:N | image:NAME"
//   [data-testid=ranking]   one for each encoder shown, with data-encoder, data-query, aria-busy; inside:
//   [data-testid=results]   li[data-item][data-shared-level][data-score], in ranked order; data-encoder
//   [data-testid=more]      shows more results
//   [data-metric][data-encoder]  data-value in full precision ("" for none): h_ap, ndcg, asi,
//                           ap-LEVEL and recall_at_1-LEVEL with levels from 1, the coarsest
//   [data-testid=votes]     for an unknown picture: tr[data-vote=LEVEL][data-class][data-value]
//   select[data-level]      names the class of one's own picture, level by level
//   [data-testid=report]    the encoders' means over all queries
//   window.akin.embed       see page.ts

import { html, nothing, type PropertyValues } from "lit";
import { state } from "lit/decorators.js";
import { bundleAddress, PAGE, readAddress, writeAddress, type Address } from "../address.js";
import { Client, type PhaseProgress } from "../client.js";
import { Collection } from "../collection.js";
import { toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation, sharedLevel } from "../kinship.js";
import type { Backend, Embedded, Metrics, Phase, Result, Running, Vote } from "../protocol.js";
import { rove, settle } from "../roving.js";
import { Sprites } from "../sprites.js";
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
import { queryCard, sameQuery, type Query } from "./query-card.js";
import { rankStrip } from "./rank-strip.js";
import { resultCard } from "./result-card.js";
import "./sample-picker.js";

/** What one encoder answers to the query. */
interface Answer {
  encoder: number;
  results: Result[];
  metrics: Metrics | null;
  votes: Vote[] | null;
  timing: Timing;
}

/** Results in the strip, whatever the number of cards. */
const STRIP = 100;
/** A worker that dies more often than this is left alone until the reader asks again. */
const RESTARTS = 2;

export class AkinApp extends LightElement {
  @state() private accessor loading: "loading" | "ready" | "error" = "loading";
  @state() private accessor fault: Failure | null = null;
  @state() private accessor phases: ReadonlyMap<Phase, PhaseProgress> = new Map();
  @state() private accessor running: Running | null = null;
  @state() private accessor collection: Collection | null = null;
  @state() private accessor view: View = { encoder: 0, compare: null };
  @state() private accessor query: Query | null = null;
  @state() private accessor queryFault: Failure | null = null;
  @state() private accessor answers: Answer[] = [];
  @state() private accessor busy = false;
  @state() private accessor fetching: string | null = null;
  @state() private accessor said = "Loading the engine.";

  private address: Address = readAddress(location.search);
  private sprites: Sprites | null = null;
  private readonly ready = new Map<number, Promise<unknown>>();
  /** Embeddings of the reader's own picture, by encoder. */
  private embedded = new Map<number, Promise<Embedded>>();
  private turn = 0;
  private attempts = 0;
  private restarts = 0;
  private readonly client = new Client({
    progress: (phases) => (this.phases = phases),
    running: (running) => (this.running = running),
    died: (failure) => void this.restart(failure),
  });

  override connectedCallback(): void {
    // What stands here until now is for readers without scripts.
    this.replaceChildren();
    super.connectedCallback();
    void this.open(null);
  }

  /** The embedding of an image file's bytes, for tests. */
  async embed(encoder: string | number, image: Uint8Array): Promise<number[]> {
    const index = typeof encoder === "number" ? encoder : this.encoderNamed(encoder);
    if (index === null) throw new Error(`there is no encoder ${encoder}`);
    await this.need(index);
    return Array.from((await this.client.call("embed", { encoder: index, image })).embedding);
  }

  // --- Loading ---------------------------------------------------------------------------------

  private async open(avoid: string | null): Promise<void> {
    const attempt = ++this.attempts;
    this.loading = "loading";
    this.fault = null;
    this.said = "Loading the engine.";
    this.phases = new Map();
    this.ready.clear();
    try {
      const bundle = bundleAddress(this.address.bundle);
      const { manifest, labels, running } = await this.client.call("open", { bundle, backend: this.address.backend, avoid });
      this.running = running;
      if (!this.collection) {
        this.collection = new Collection(manifest, labels);
        this.sprites = new Sprites(this.client, manifest.thumbnails);
        this.view = this.firstView();
        this.query = this.firstQuery();
        // The thumbnails that are now on show come before the encoder.
        await this.updateComplete;
      }
      for (const encoder of this.shown()) await this.need(encoder);
      if (attempt !== this.attempts) return;
      this.loading = "ready";
      this.said = "Ready.";
      await this.run();
    } catch (error) {
      // Another back end was chosen, or a fresh worker took over: this attempt no longer counts.
      if (attempt !== this.attempts) return;
      this.fault = toFailure(error);
      this.loading = "error";
      this.said = "The gallery could not be opened.";
    }
  }

  /** The encoder of the address, or else the one with the best H-AP. */
  private firstView(): View {
    const encoders = this.encoders();
    const hAp = (index: number) => encoders[index]?.report?.overall?.h_ap ?? 0;
    const best = encoders.reduce((best, _, index) => (hAp(index) > hAp(best) ? index : best), 0);
    const encoder = this.encoderNamed(this.address.encoder) ?? best;
    const compare = this.encoderNamed(this.address.compare);
    return { encoder, compare: compare === encoder ? null : compare };
  }

  /** The item of the address, or else one from the gallery, so that there is something to see. */
  private firstQuery(): Query | null {
    const { q } = this.address;
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

  /** Loads an encoder once. */
  private need(index: number): Promise<unknown> {
    let ready = this.ready.get(index);
    if (!ready) {
      if (this.loading === "ready") this.fetching = this.encoderName(index);
      ready = this.client.call("encoder", { index }).finally(() => (this.fetching = null));
      ready.catch(() => this.ready.delete(index));
      this.ready.set(index, ready);
    }
    return ready;
  }

  /** A worker has died: another one takes over, on the CPU, and answers the same query. */
  private async restart(failure: Failure): Promise<void> {
    this.embedded.clear();
    if (++this.restarts > RESTARTS) {
      this.fault = failure;
      this.loading = "error";
      return;
    }
    await this.open(`The engine was started anew because ${failure.message}.`);
  }

  private changeBackend(backend: Backend): void {
    this.client.stop({ code: "stopped", message: "another back end was chosen", hint: "" });
    this.address.backend = backend;
    writeAddress(this.address);
    this.embedded.clear();
    void this.open(null);
  }

  // --- Asking ----------------------------------------------------------------------------------

  private async run(): Promise<void> {
    const { query } = this;
    const turn = ++this.turn;
    if (!query || this.loading !== "ready") return;
    this.busy = true;
    this.queryFault = null;
    try {
      const answers: Answer[] = [];
      for (const encoder of this.shown()) answers.push(await this.answer(query, encoder));
      if (turn !== this.turn) return;
      this.answers = answers;
      this.said = this.summary();
    } catch (error) {
      if (turn !== this.turn) return;
      const fault = toFailure(error);
      if (fault.code === "stopped" || fault.code === "worker") return;
      this.queryFault = fault;
      this.answers = [];
      this.said = "";
    } finally {
      if (turn === this.turn) this.busy = false;
    }
  }

  private async answer(query: Query, encoder: number): Promise<Answer> {
    await this.need(encoder);
    const k = Math.max(STRIP, this.address.k);
    if (query.kind === "item") {
      const { search_ms, ...ranked } = await this.client.call("rank", { encoder, k, item: query.item, embedding: null, labels: null });
      return { encoder, ...ranked, timing: { decode: null, embed: null, search: search_ms } };
    }
    let embedding = this.embedded.get(encoder);
    if (!embedding) {
      embedding = this.client.call("embed", { encoder, image: query.bytes });
      this.embedded.set(encoder, embedding);
      const kept = embedding;
      kept.catch(() => this.embedded.get(encoder) === kept && this.embedded.delete(encoder));
    }
    const { embedding: vector, decode_ms, embed_ms } = await embedding;
    const { search_ms, ...ranked } = await this.client.call("rank", { encoder, k, item: null, embedding: vector, labels: query.labels });
    return {
      encoder,
      ...ranked,
      results: this.related(ranked.results, query.labels ?? votedPath(ranked.votes)),
      timing: { decode: decode_ms, embed: embed_ms, search: search_ms },
    };
  }

  /** Kinship with a picture whose labels the engine does not know: named by the reader, or voted for. */
  private related(results: Result[], path: ArrayLike<number> | null): Result[] {
    const { collection } = this;
    if (!collection || !path) return results;
    return results.map((result) => ({ ...result, shared_level: result.shared_level ?? sharedLevel(path, collection.labels(result.item)) }));
  }

  private askItem(item: number, move: boolean): void {
    this.address.q = item;
    this.setQuery({ kind: "item", item });
    if (!move) return;
    void this.updateComplete.then(() => {
      this.querySelector<HTMLElement>("#query-title")?.focus({ preventScroll: true });
      this.querySelector(".answer")?.scrollIntoView({ block: "start" });
    });
  }

  private async askPicture(file: File): Promise<void> {
    this.address.q = null;
    const bytes = new Uint8Array(await file.arrayBuffer());
    this.setQuery({ kind: "image", name: file.name, bytes, url: URL.createObjectURL(file), labels: null });
  }

  private setQuery(query: Query): void {
    if (this.query?.kind === "image" && this.query.url !== (query as { url?: string }).url) URL.revokeObjectURL(this.query.url);
    this.embedded = new Map();
    this.query = query;
    this.address.k = PAGE;
    writeAddress(this.address);
    void this.run();
  }

  /** The reader says what the picture is: the same embedding, now with a score. */
  private name(labels: Uint32Array | null): void {
    if (this.query?.kind !== "image") return;
    this.query = { ...this.query, labels };
    void this.run();
  }

  private changeView(view: View): void {
    this.view = view;
    this.address.encoder = this.encoderName(view.encoder);
    this.address.compare = view.compare === null ? null : this.encoderName(view.compare);
    writeAddress(this.address);
    void this.run();
  }

  private more(): void {
    this.address.k += PAGE;
    writeAddress(this.address);
    if (this.address.k > STRIP) void this.run();
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
        return `Ranked by ${this.encoderName(encoder)}${scored}. ${first ? `First comes ${collection.name(first.item)}${kin}.` : ""}`;
      })
      .join(" ");
  }

  // --- Drawing ---------------------------------------------------------------------------------

  override render() {
    return html`<p class="status" role="status" data-testid="status" data-state=${this.loading}>${this.said}</p>
      ${this.loading === "error" && this.fault ? this.failed(this.fault) : nothing}
      ${this.loading === "loading" ? this.waiting() : nothing} ${this.collection && this.loading !== "error" ? this.tool(this.collection) : nothing}`;
  }

  protected override updated(_changed: PropertyValues): void {
    for (const list of this.querySelectorAll(".results")) settle(list);
  }

  private failed(fault: Failure) {
    return notice(fault, "The gallery could not be opened", { label: "Try again", run: () => void this.open(null) });
  }

  private waiting() {
    return html`<section class="waiting" aria-label="Loading">
      <p class="waiting-title">${this.collection ? `Opening ${this.collection.manifest.title}` : "Fetching the engine"}</p>
      ${loadProgress(this.phases)}
    </section>`;
  }

  private tool(collection: Collection) {
    const { manifest } = collection;
    return html`<header class="bundle">
        <h3 class="bundle-title">${manifest.title}</h3>
        <p class="soft">
          ${format.count(manifest.gallery.count, "picture")}, ${format.count(collection.depth, "level")}: ${collection.levels.join(" › ")}. ${manifest.description}
        </p>
      </header>
      <section class="ask" aria-label="Ask">
        <akin-file
          @picture=${(event: CustomEvent<File>) => void this.askPicture(event.detail)}
          @refuse=${(event: CustomEvent<Failure>) => (this.queryFault = event.detail)}
        ></akin-file>
        <akin-samples
          .collection=${collection}
          .sprites=${this.sprites}
          .chosen=${this.query?.kind === "item" ? this.query.item : null}
          @ask=${(event: CustomEvent<number>) => this.askItem(event.detail, false)}
        ></akin-samples>
      </section>
      <div class="bar">
        ${encoderSwitch(manifest.encoders, this.view, (view) => this.changeView(view))}
        ${this.running ? backendBadge(this.running, this.timing(), (backend) => this.changeBackend(backend)) : nothing}
      </div>
      ${this.fetching ? html`<section class="waiting" aria-label="Loading"><p class="waiting-title">Fetching ${this.fetching}</p>${loadProgress(this.phases)}</section>` : nothing}
      ${this.queryFault ? notice(this.queryFault, this.faultTitle(this.queryFault)) : nothing} ${this.answerPanel(collection)} ${this.about(collection)}`;
  }

  /** Times of the first column; those of the second differ little and would only clutter. */
  private timing(): Timing | null {
    return this.answers[0]?.timing ?? null;
  }

  private faultTitle({ code }: Failure): string {
    if (code !== "image") return "There is no answer to this query";
    return this.query?.kind === "image" ? `“${this.query.name}” cannot be read` : "This cannot be asked with";
  }

  private answerPanel(collection: Collection) {
    const { query, sprites, answers } = this;
    if (this.queryFault && answers.length === 0) return nothing;
    if (!query || !sprites) {
      return html`<p class="empty">Nothing has been asked yet. Drop a picture anywhere on this page, or choose one above.</p>`;
    }
    const scored = answers.filter((answer) => answer.metrics);
    const votes = answers.filter((answer) => answer.votes);
    const columns = scored.flatMap(({ encoder, metrics }) => (metrics ? [{ encoder: this.encoderName(encoder), metrics }] : []));
    return html`<section class="answer" aria-label="Answer" data-columns=${this.shown().length}>
      ${queryCard(
        query,
        collection,
        sprites,
        votes.map(({ encoder, votes }) => ({ encoder: this.encoderName(encoder), votes: votes ?? [] })),
        (event) => this.name(event.detail),
      )}
      <div class="rankings" @click=${this.pick} @pointerover=${this.point} @pointerleave=${this.unpoint} @focusin=${this.point} @focusout=${this.unpoint}>
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
      data-query=${sameQuery(query)}
      aria-busy=${this.busy}
      aria-label=${`Ranked by ${name}`}
    >
      <header class="ranking-head">
        <div><p class="eyebrow">Ranked by</p><h3>${name}</h3></div>
        ${metrics ? html`<p class="ranking-score"><span class="soft">H-AP</span> <span class="number">${format.score(metrics.h_ap)}</span></p>` : nothing}
      </header>
      ${rankStrip(results.slice(0, STRIP), collection.levels)}
      <ol class="results" data-testid="results" data-encoder=${name} aria-label=${`Results of ${name}, best first`} @keydown=${rove}>
        ${results.slice(0, this.address.k).map((result, index) => resultCard(result, index + 1, collection, sprites))}
      </ol>
    </section>`;
  }

  private moreButton(collection: Collection) {
    const shown = Math.min(this.address.k, this.answers[0]?.results.length ?? 0);
    if (shown === 0 || shown >= collection.manifest.gallery.count - 1) return nothing;
    return html`<p class="more"><button type="button" class="button" data-testid="more" ?disabled=${this.busy} @click=${this.more}>Show ${PAGE} more</button></p>`;
  }

  private about(collection: Collection) {
    const { manifest } = collection;
    return html`<section class="about" aria-labelledby="about-title">
      <h2 id="about-title">What these encoders are like</h2>
      <div class="about-columns">
        <div>
          <p>One ranking can be lucky. These are the means over all of the bundle’s queries, measured when it was made.</p>
          <dl class="encoders">
            ${manifest.encoders.map(({ name, description, dimension }) => html`<div><dt>${name}</dt><dd>${description} <span class="soft">${dimension} numbers a picture.</span></dd></div>`)}
          </dl>
          <p><span class="soft">Licence of the bundle</span> ${manifest.licence}</p>
          ${manifest.model_card
            ? html`<details class="card" data-testid="model-card"><summary>Model card</summary><div class="card-text">${modelCard(manifest.model_card)}</div></details>`
            : nothing}
        </div>
        ${modelTable(manifest.encoders, collection.levels)}
      </div>
    </section>`;
  }

  // --- Pointing --------------------------------------------------------------------------------

  private pick(event: Event): void {
    const item = (event.target as Element).closest<HTMLElement>("[data-ask]")?.dataset["ask"];
    if (item !== undefined) this.askItem(Number(item), true);
  }

  /** Marks the same item in the strip, and in the other ranking. */
  private point(event: Event): void {
    const pointed = (event.target as Element).closest<HTMLElement>("[data-item], [data-cell]");
    this.unpoint();
    const item = pointed?.dataset["item"] ?? pointed?.dataset["cell"];
    if (item === undefined) return;
    for (const element of this.querySelectorAll(`.rankings [data-item="${item}"], .rankings [data-cell="${item}"]`)) {
      element.classList.add("pointed");
    }
  }

  private unpoint(): void {
    for (const element of this.querySelectorAll(".pointed")) element.classList.remove("pointed");
  }
}
customElements.define("akin-app", AkinApp);

/** Class ids that the neighbours vote for, coarse to fine. */
function votedPath(votes: Vote[] | null): number[] | null {
  return votes ? [...votes].sort((a, b) => a.level - b.level).map((vote) => vote.class) : null;
}
