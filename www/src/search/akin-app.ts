// <akin-app>: the search. Its controller holds the state; this element draws it with what stands beside it.
//
// What tests may rely on:
//   [data-testid=status]    data-state="loading | ready | error"; screen readers read its text
//   [data-testid=progress]  while loading: li[data-phase][data-state=waiting|running|done]
//   [data-testid=notice]    an error, with data-code
//   [data-testid=galleries] radio buttons by path, and "own"; [data-testid=own-folder], [data-testid=own-files]
//                           the inputs for own pictures; [data-testid=embedding] with [data-testid=cancel]
//   [data-testid=served]    the server searches the gallery
//   [data-testid=own]       data-count; inside [data-testid=damaged] with data-count
//   [data-testid=unlike]    the picture is unlike the gallery: p[data-encoder][data-best][data-below]
//   [data-testid=backend]   data-backend="webgpu | cpu"; inside: [data-testid=backend-reason]
//   [data-testid=time]      [data-timing=whole|decoding|network|search|drawing|rest] with data-value in milliseconds
//   [data-testid=encoders]  radio buttons by encoder name, and [data-testid=compare] for side by side
//   [data-testid=file]      the file input; without an encoder, [data-testid=no-encoder] says why there is none
//   .samples [data-item]    buttons that make an item the query; [data-testid=random]
//   [data-testid=query]     data-query="item:N | image:NAME"
//   [data-testid=ranking]   one for each encoder shown, with data-encoder, data-query, aria-busy; inside:
//   [data-testid=results]   li[data-item][data-shared-level][data-score], in ranked order; data-encoder
//   [data-testid=more]      shows more results
//   [data-look-item]        the button of a result that opens <akin-look>, see look/akin-look.ts
//   [data-metric][data-encoder]  data-value in full precision ("" for none): h_ap, ndcg, asi,
//                           ap-LEVEL and recall_at_1-LEVEL with levels from 1, the coarsest
//   [data-testid=votes]     for a picture without labels: tr[data-vote=LEVEL][data-class][data-value]
//   select[data-level]      the class of the reader's own picture at each level
//   [data-testid=report]    the encoders' means over all queries
//   window.akin.embed       see views/search.ts

import { html, nothing, type PropertyValues } from "lit";
import type { AddressState, COMMON } from "../address.js";
import { LightElement } from "../elements/light.js";
import { downloadOffer } from "../elements/download-offer.js";
import { loadProgress } from "../elements/load-progress.js";
import { notice } from "../elements/notice.js";
import type { Failure } from "../failure.js";
import { galleryBar } from "../gallery/gallery-bar.js";
import { ownHeader } from "../gallery/own-header.js";
import type { Folder } from "../gallery/photos.js";
import { setTabStop } from "../roving.js";
import { session, type OpenBundle } from "../session.js";
import { about } from "./about.js";
import { answerPanel } from "./answer-panel.js";
import { answerTime } from "./answer-time.js";
import { backendBadge } from "./backend-badge.js";
import { bundleHeader } from "./bundle-header.js";
import { SearchController } from "./controller.js";
import { encoderSwitch } from "./encoder-switch.js";
import "./file-entry.js";
import type { parameters } from "./parameters.js";
import "./sample-picker.js";

export class AkinApp extends LightElement {
  private readonly search = new SearchController(this);

  override connectedCallback(): void {
    // Removes the text for readers without scripts.
    this.replaceChildren();
    super.connectedCallback();
  }

  /** Opens the bundle that the address names. */
  start(address: AddressState<typeof parameters & typeof COMMON>): void {
    this.search.start(address);
  }

  /** The embedding of an image file's bytes, for tests. */
  embed(encoder: string | number, image: Uint8Array): Promise<number[]> {
    return this.search.embed(encoder, image);
  }

  override render() {
    const { loading, statusText, openFailure, bundle } = this.search;
    return html`<p class="status" role="status" data-testid="status" data-state=${loading}>${statusText}</p>
      ${this.galleries()} ${loading === "error" && openFailure ? this.openNotice(openFailure) : nothing}
      ${loading === "loading" ? this.waiting(bundle) : nothing}
      ${bundle && loading !== "error" ? this.tool(bundle) : nothing}`;
  }

  protected override updated(_changed: PropertyValues): void {
    for (const list of this.querySelectorAll(".results")) setTabStop(list);
  }

  private galleries() {
    const { search } = this;
    if (!search.started) return nothing;
    return galleryBar({
      bundles: search.bundles,
      bundle: search.bundlePath,
      own: search.own,
      isOwn: search.isOwn,
      encoder:
        search.bundle && search.loading === "ready" && search.embedsPictures
          ? (session.entries()[search.shown.encoder] ?? null)
          : null,
      chooseBundle: (path) => search.chooseBundle(path),
      chooseOwn: (gallery) => search.chooseOwn(gallery),
      chooseKept: (kept) => search.chooseKept(kept),
      makeOwn: (folder) => void search.makeOwn(folder),
      refuseFolder: (name) => search.refuseFolder(name),
    });
  }

  private openNotice(failure: Failure) {
    const tryAgain = { label: "Try again", run: () => void this.search.open() };
    return notice(failure, "The gallery could not be opened", tryAgain);
  }

  private waiting(bundle: OpenBundle | null) {
    const title = bundle ? `Opening ${bundle.collection.manifest.title}` : "Loading the engine";
    return html`<section class="waiting" aria-label="Loading">
      <p class="waiting-title">${title}</p>
      ${downloadOffer(session.offer)} ${loadProgress(session.phases)}
    </section>`;
  }

  private tool({ collection, sprites }: OpenBundle) {
    const { search } = this;
    const { query, queryFailure } = search;
    const own = search.isOwn ? search.own.gallery : null;
    return html`${own ? ownHeader(search.own, own, () => search.leaveOwn()) : bundleHeader(collection, search.isServed)}
      <section class="ask" aria-label="Query">
        <akin-file
          .embeds=${search.embedsPictures}
          @picture=${(event: CustomEvent<File>) => search.searchPicture(event.detail)}
          @folder=${(event: CustomEvent<Promise<Folder>>) => void search.makeOwn(event.detail)}
          @reject=${(event: CustomEvent<Failure>) => search.rejectPicture(event.detail)}
        ></akin-file>
        <akin-samples
          .collection=${collection}
          .sprites=${sprites}
          .chosen=${query?.kind === "item" ? query.item : null}
          @choose=${(event: CustomEvent<number>) => search.searchItem(event.detail)}
        ></akin-samples>
      </section>
      <div class="bar">
        ${encoderSwitch(collection.manifest.encoders, search.shown, (shown) => void search.show(shown))}
        <div class="engine-state">
          ${search.timing ? answerTime(search.timing) : nothing}
          ${session.running ? backendBadge(session.running, (backend) => search.changeBackend(backend)) : nothing}
        </div>
      </div>
      ${search.loading === "ready" ? downloadOffer(session.offer) : nothing}
      ${search.loading === "ready" && session.loadingEncoder ? this.waitingForEncoder(session.loadingEncoder) : nothing}
      ${queryFailure ? notice(queryFailure, this.failureTitle(queryFailure)) : nothing}
      ${answerPanel(search, { collection, sprites }, (item) => this.searchResult(item))}
      ${search.look ? html`<akin-look .request=${search.look} @close=${() => search.closeLook()}></akin-look>` : nothing}
      ${search.isOwn ? nothing : about(collection, session.parities)}`;
  }

  private waitingForEncoder(name: string) {
    return html`<section class="waiting" aria-label="Loading">
      <p class="waiting-title">Loading ${name}</p>
      ${loadProgress(session.phases)}
    </section>`;
  }

  private failureTitle({ code }: Failure): string {
    const { query } = this.search;
    if (code === "encoder") return "This gallery has no encoder for your picture";
    if (code !== "image") return "This query could not be answered";
    return query?.kind === "image" ? `“${query.name}” cannot be read` : "This cannot be used as a query";
  }

  /** Makes a result the query, and moves the focus to it. */
  private searchResult(item: number): void {
    this.search.searchItem(item);
    void this.updateComplete.then(() => {
      this.querySelector<HTMLElement>("#query-title")?.focus({ preventScroll: true });
      this.querySelector(".answer")?.scrollIntoView({ block: "start" });
    });
  }
}
customElements.define("akin-app", AkinApp);
