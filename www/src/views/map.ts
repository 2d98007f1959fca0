import { html, render } from "lit";
import { oneOf, text, whole } from "../address.js";
import { parseClass, printClass } from "../class-choice.js";
import { isSameBundle, loadBundles, type BundleEntry } from "../gallery/bundles.js";
import { downloadOffer } from "../elements/download-offer.js";
import { notice } from "../elements/notice.js";
import { toFailure } from "../failure.js";
import "../map/akin-affinity.js";
import "../map/akin-encoders.js";
import "../map/akin-map.js";
import { GallerySource } from "../map/gallery-source.js";
import type { ClassNode } from "../map/tree.js";
import { session } from "../session.js";
import { defineView } from "./view.js";

export const parameters = {
  /** The query, an item of the bundle. */
  q: whole(null),
  /** The name of the encoder. */
  encoder: text(null),
  /** The name of the encoder that it is compared with. */
  compare: text(null),
  /** The name of the map. */
  map: text(""),
  /** What the points are. */
  points: oneOf(["items", "means"], "items"),
  /** The level of the colours, 1 … L; 0 for kinship to the query. */
  colour: whole(1, { max: 99 }),
  /** The class chosen: its level and its number, `2.17`. */
  class: text(""),
  /** The learned ancestors: hidden, `all`, or the number of the one chosen. */
  proxies: text(""),
  /** The list of queries on which two encoders differ. */
  list: oneOf(["first", "second", "mistakes-first", "mistakes-second"], "second"),
  /** The query on which two encoders are compared. */
  look: whole(null),
};

/** A look into a model: the gallery as a map, its classes as a matrix, and two encoders over all queries. */
export const view = defineView({
  parameters,
  ofBundle: ["q", "map", "class", "look"],
  open({ root, address }) {
    const map = document.createElement("akin-map");
    const affinity = document.createElement("akin-affinity");
    const encoders = document.createElement("akin-encoders");
    map.hide = address.values.hide.join(" ");
    const place = document.createElement("div");
    const choice = document.createElement("div");
    let bundles: readonly BundleEntry[] = [];
    const drawGalleries = () => render(html`${galleries()} ${sampleNote()}`, choice);
    void loadBundles().then(
      (found) => {
        bundles = found;
        drawGalleries();
      },
      () => {},
    );
    render(
      html`<div class="view-head">
          <h1>A map of the gallery</h1>
          <p class="lede">
            Every point is a picture, or the mean of all pictures of a class. The encoder puts pictures that it finds
            alike near each other: a good one keeps families together.
          </p>
        </div>
        ${choice} ${place}`,
      root,
    );

    const chooseBundle = (bundle: string) => {
      address.set({ bundle, q: null, map: "", class: "", look: null });
      apply();
    };

    /** That the map has only a part of the gallery. */
    const sampleNote = () =>
      bundles.some(({ path, sample }) => sample && isSameBundle(path, address.values.bundle))
        ? html`<p class="soft" data-testid="sample">
            These are the pictures that the page holds. Its server searches the whole gallery.
          </p>`
        : "";

    /** The galleries of the page. */
    const galleries = () =>
      bundles.length < 2
        ? ""
        : html`<label class="field"
            >Gallery
            <select
              data-testid="map-gallery"
              @change=${(event: Event) => chooseBundle((event.target as HTMLSelectElement).value)}
            >
              ${bundles.map(
                ({ path, title }) =>
                  html`<option value=${path} .selected=${isSameBundle(path, address.values.bundle)}>${title}</option>`,
              )}
            </select></label
          >`;

    /** Hands the state of the address to the elements. */
    const apply = () => {
      const { source } = map;
      if (!source) return;
      if (!isSameBundle(source.bundle, address.values.bundle)) return void open();
      const { q, encoder, compare, map: name, points, colour, class: chosen, proxies, list, look } = address.values;
      const item = (number: number | null) => (number !== null && number < source.collection.count ? number : null);
      const shown = source.encoderNamed(encoder) ?? source.bestEncoder();
      const other = source.encoderNamed(compare);
      map.encoder = affinity.encoder = shown;
      map.map = name;
      map.means = points === "means";
      map.proxies = proxies;
      map.colour = colour;
      map.query = item(q);
      const { level, id } = parseClass(chosen, source.collection) ?? { level: 0, id: -1 };
      map.chooseById(level, id);
      const first = other ?? source.encoders.findIndex((_, index) => index !== shown);
      encoders.pair = [first === shown ? 0 : Math.max(0, first), first === shown ? 1 : shown];
      encoders.list = list;
      encoders.query = item(look);
    };
    map.addEventListener("akin-change", () => {
      const { source, choice } = map;
      affinity.encoder = map.encoder;
      address.set({
        q: map.query,
        encoder: source?.encoders[map.encoder]?.name ?? null,
        map: map.map,
        points: map.means ? "means" : "items",
        colour: map.colour,
        proxies: map.proxies,
        class: printClass(choice?.kind === "class" ? choice.node : null),
      });
    });
    affinity.addEventListener("akin-class", (event) => {
      const { node } = (event as CustomEvent<{ node: ClassNode }>).detail;
      map.chooseById(node.level, node.id);
      map.announce();
      map.scrollIntoView({ block: "start" });
    });
    encoders.addEventListener("akin-change", () => {
      address.set({
        list: encoders.list,
        look: encoders.query,
        compare: map.source?.encoders[encoders.pair[0]]?.name ?? null,
      });
    });
    address.onRestore(apply);

    const show = () => {
      const parts = html`${downloadOffer(session.offer)} ${map}
      ${
        address.shows("affinity")
          ? html`<section class="part" aria-labelledby="affinity-title">
              <h2 id="affinity-title">How alike its classes are</h2>
              <p>
                Each cell is the mean score of two classes. Classes of one parent stand together, so an encoder that
                keeps families together has squares of high scores along the diagonal.
              </p>
              ${affinity}
            </section>`
          : ""
      }
      ${
        address.shows("encoders") && (map.source?.encoders.length ?? 0) > 1
          ? html`<section class="part" aria-labelledby="encoders-title">
              <h2 id="encoders-title">Where two encoders differ</h2>
              <p>Both have ranked the gallery for every query. Choose one to see both rankings side by side.</p>
              ${encoders}
            </section>`
          : ""
      }`;
      render(parts, place);
    };

    let { offer } = session;
    session.addEventListener("change", () => {
      if (offer === session.offer) return;
      offer = session.offer;
      show();
    });

    const open = async () => {
      drawGalleries();
      render(html`<p class="placeholder" role="status">Opening the gallery.</p>`, place);
      try {
        const { bundle, backend } = address.values;
        map.source = affinity.source = encoders.source = await GallerySource.open(session, { bundle, backend });
        apply();
        show();
      } catch (error) {
        const retry = { label: "Try again", run: () => void open() };
        render(notice(toFailure(error), "The gallery could not be opened", retry), place);
      }
    };
    void open();
  },
});
