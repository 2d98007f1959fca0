// What the map shows: its encoder, its name, its colours, and the tools.

import { html, nothing } from "lit";
import type { GallerySource } from "./gallery-source.js";
import type { Navigation } from "./navigation.js";
import { proxyControl } from "./proxy-panel.js";

interface Shown {
  encoder: number;
  /** The name of the map. */
  map: string;
  /** The level of the colours; 0 for kinship to the query. */
  level: number;
  hasQuery: boolean;
  /** Whether points are class means; null if no map of the encoder has them. */
  means: boolean | null;
  /** Whether this map has class means. */
  hasMeans: boolean;
  /** Whether the map has learned ancestors, and whether they are shown. */
  proxies: { has: boolean; shown: boolean };
}

interface Actions {
  encoder: (index: number) => void;
  map: (name: string) => void;
  colour: (level: number) => void;
  means: (on: boolean) => void;
  proxies: (shown: boolean) => void;
}

const value = (event: Event): string => (event.target as HTMLSelectElement).value;

export function mapToolbar(
  { collection, encoders }: GallerySource,
  { encoder, map, level, hasQuery, means, hasMeans, proxies }: Shown,
  navigation: Navigation,
  set: Actions,
) {
  const maps = encoders[encoder]?.maps ?? [];
  return html`<div class="toolbar" role="group" aria-label="What the map shows">
    ${
      encoders.length > 1
        ? html`<label class="field"
            >Encoder
            <select data-testid="map-encoder" @change=${(event: Event) => set.encoder(Number(value(event)))}>
              ${encoders.map(({ name }, at) => html`<option value=${at} ?selected=${at === encoder}>${name}</option>`)}
            </select></label
          >`
        : nothing
    }
    <label class="field"
      >Map
      <select data-testid="map-name" @change=${(event: Event) => set.map(value(event))}>
        ${maps.map(({ name }) => html`<option value=${name} ?selected=${name === map}>${name}</option>`)}
      </select></label
    >
    ${
      means === null
        ? nothing
        : html`<label class="field"
            >Points
            <select data-testid="map-points" @change=${(event: Event) => set.means(value(event) === "means")}>
              <option value="items" ?selected=${!means}>pictures</option>
              <option value="means" ?selected=${means} ?disabled=${!hasMeans}>
                ${hasMeans ? "class means" : "class means (too few classes)"}
              </option>
            </select></label
          >`
    }
    <label class="field"
      >Colour
      <select data-testid="map-colour" @change=${(event: Event) => set.colour(Number(value(event)))}>
        ${collection.classLevels.map((name, at) => html`<option value=${at + 1} ?selected=${level === at + 1}>${name}</option>`)}
        <option value="0" ?selected=${level === 0} ?disabled=${!hasQuery}>kinship to the query</option>
      </select></label
    >
    ${proxies.has ? proxyControl(proxies.shown, set.proxies) : nothing}
    <span class="tools">
      <button
        type="button"
        class="quiet"
        aria-pressed=${navigation.lassoOn}
        data-testid="lasso"
        @click=${() => (navigation.lassoOn = !navigation.lassoOn)}
      >
        Lasso
      </button>
      <button type="button" class="quiet" aria-label="Zoom in" @click=${() => navigation.zoomIn()}>+</button>
      <button type="button" class="quiet" aria-label="Zoom out" @click=${() => navigation.zoomOut()}>−</button>
      <button type="button" class="quiet" @click=${() => navigation.fit()}>Whole map</button>
    </span>
  </div>`;
}
