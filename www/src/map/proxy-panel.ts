import { html } from "lit";
import * as format from "../format.js";
import type { GallerySource } from "./gallery-source.js";
import type { Proxies } from "./proxies.js";

/** The number of classes named below a proxy. */
const CLASSES = 3;

interface Actions {
  choose: (proxy: number | null) => void;
  query: (item: number) => void;
  focus: (item: number) => void;
}

/** The proxies of a map: the choice of one, what it is an ancestor of, and the pictures nearest to it. */
export function proxyPanel(source: GallerySource, proxies: Proxies, chosen: number | null, actions: Actions) {
  const { collection, sprites } = source;
  const size = (proxy: number) => proxies.descendants[proxy]?.length ?? 0;
  return html`<section class="list" aria-labelledby="proxies-title" data-testid="proxies" data-chosen=${chosen ?? ""}>
    <header>
      <h2 id="proxies-title">Learned ancestors</h2>
      <p class="soft">
        Each diamond is a proxy of HIER: a vector that training has placed so that related pictures meet below it. A
        picture’s line leads from ancestor to ancestor: at each level to the proxy that is nearest to both the picture
        and its closest kin of that level.
      </p>
      <label class="field"
        >Proxy
        <select
          data-testid="proxy"
          @change=${(event: Event) => {
            const { value } = event.target as HTMLSelectElement;
            actions.choose(value === "" ? null : Number(value));
          }}
        >
          <option value="" ?selected=${chosen === null}>all ${proxies.count}</option>
          ${proxies
            .byDescendants()
            .map(
              (proxy) =>
                html`<option value=${proxy} ?selected=${proxy === chosen}>
                  ${proxy + 1}, ancestor of ${format.count(size(proxy), "picture")}
                </option>`,
            )}
        </select></label
      >
    </header>
    ${
      chosen === null
        ? html`<p class="hint">Choose a proxy here or on the map, and its pictures appear.</p>`
        : html`<p class="proxy-text" role="status">${describe(source, proxies, chosen)}</p>
            <ul class="tiles" aria-label=${`The pictures nearest to proxy ${chosen + 1}`} data-testid="proxy-nearest">
              ${proxies.nearest(chosen).map(
                (item, at) =>
                  html`<li data-item=${item}>
                    <button type="button" @click=${() => actions.query(item)} @focus=${() => actions.focus(item)}>
                      <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
                      <span class="tile-line"><span class="number">${at + 1}</span> ${collection.name(item)}</span>
                    </button>
                  </li>`,
              )}
            </ul>`
    }
  </section>`;
}

/** What a proxy is an ancestor of, in words. */
function describe({ collection }: GallerySource, proxies: Proxies, proxy: number): string {
  const items = proxies.descendants[proxy] ?? [];
  if (items.length === 0) return `No picture meets its kin below proxy ${proxy + 1}. The pictures nearest to it:`;
  const { depth, levels } = collection;
  const atLevel = levels
    .map((name, index) => ({
      name,
      count: items.filter((item) => proxies.ancestor(item, index + 1) === proxy).length,
    }))
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => `of ${count} at the level ${name}`);
  const classes = new Map<string, number>();
  for (const item of items) {
    const name = collection.className(1, collection.labels(item)[0] ?? 0);
    classes.set(name, (classes.get(name) ?? 0) + 1);
  }
  const most = [...classes]
    .sort((a, b) => b[1] - a[1])
    .slice(0, CLASSES)
    .map(([name, count]) => `${name} ${format.percent(count / items.length)}`);
  const kinds = depth > 0 ? ` They are ${most.join(", ")}${classes.size > CLASSES ? " and others" : ""}.` : "";
  return `Proxy ${proxy + 1} is an ancestor of ${format.count(items.length, "picture")}: ${atLevel.join(", ")}.${kinds} The pictures nearest to it:`;
}

/** The control that shows the proxies of a map. */
export const proxyControl = (isShown: boolean, show: (shown: boolean) => void) =>
  html`<label class="check"
    ><input
      type="checkbox"
      data-testid="show-proxies"
      .checked=${isShown}
      @change=${(event: Event) => show((event.target as HTMLInputElement).checked)}
    />
    Ancestors</label
  >`;
