// The frame of the page: navigation between its views, by links, by the browser's buttons, by address.
//
// A view stays in the page once it has been opened, hidden while another one is shown. So a reader who
// comes back finds it as it was.

import { html, render } from "lit";
import { AddressState, COMMON, printAddress, readAddress } from "./address.js";
import { notice } from "./elements/notice.js";
import { failure, toFailure } from "./failure.js";
import { VIEWS, type ViewEntry } from "./views/registry.js";
import type { View } from "./views/view.js";

interface Opened {
  readonly address: AddressState<View["parameters"] & typeof COMMON>;
  readonly ofBundle: readonly string[];
  /** The address, as it was last read or written. */
  search: string;
  /** How far the reader had scrolled when leaving it. */
  scroll: number;
}

/** The address bar follows after this time without a change. Writing it takes milliseconds, too long for a frame. */
const QUIET_MS = 200;
/** After this time without its module a view says that it is loading. */
const PATIENCE_MS = 300;

const opened = new Map<ViewEntry, Opened>();
const opening = new Map<ViewEntry, Promise<void>>();
const [firstView] = VIEWS;
const firstTitle = document.title;
let current = firstView;

export function startFrame(): void {
  document.addEventListener("click", followLink);
  window.addEventListener("popstate", () => {
    // A link within a view changes only what follows the #.
    if (location.search === opened.get(current)?.search) return;
    void show(location.search).then(() => {
      focusHeading();
      window.scrollTo({ top: opened.get(current)?.scroll ?? 0, behavior: "instant" });
    });
  });
  void show(location.search);
}

// --- Views -------------------------------------------------------------------------------------

const viewOf = (search: string): ViewEntry => {
  const name = new URLSearchParams(search).get("view");
  return VIEWS.find((entry) => entry.name === name) ?? firstView;
};

/** The section of a view. That of the first view stands in index.html, to be read before any script. */
function rootOf({ name, title }: ViewEntry): HTMLElement {
  const id = `view-${name}`;
  const existing = document.getElementById(id);
  if (existing) return existing;
  const root = document.createElement("section");
  root.id = id;
  root.className = "view";
  root.setAttribute("aria-label", title);
  document.getElementById("main")?.append(root);
  return root;
}

/** Shows the view that an address names, in the state that it names. */
async function show(search: string): Promise<void> {
  const entry = viewOf(search);
  const left = opened.get(current);
  if (left) left.scroll = window.scrollY;
  current = entry;
  const { dataset } = document.documentElement;
  dataset["view"] = entry.name;
  dataset["hide"] = readAddress(COMMON, search).hide.join(" ");
  document.title = entry === firstView ? firstTitle : `${entry.title} · akin`;
  const root = rootOf(entry);
  for (const view of document.querySelectorAll<HTMLElement>("#main > .view")) view.hidden = view !== root;
  drawNavigation(search);
  const known = opened.get(entry);
  if (known) {
    if (known.search === search) return;
    known.search = search;
    known.address.restore(search);
    return;
  }
  let load = opening.get(entry);
  if (!load) {
    load = open(entry, root, search).finally(() => opening.delete(entry));
    opening.set(entry, load);
  }
  await load;
}

/** Loads the module of a view and opens it. Shows a failure in its place. */
async function open(entry: ViewEntry, root: HTMLElement, search: string): Promise<void> {
  const waiting = document.createElement("p");
  waiting.className = "placeholder";
  waiting.textContent = "Loading this view.";
  const timer = setTimeout(() => entry !== firstView && root.append(waiting), PATIENCE_MS);
  try {
    const { view } = await entry.load();
    const address = new AddressState({ ...COMMON, ...view.parameters }, search, () => scheduleWrite());
    opened.set(entry, { address, ofBundle: view.ofBundle ?? [], search, scroll: 0 });
    view.open({ root, address });
  } catch (error) {
    const { code, message } = toFailure(error);
    const failed = failure(code, message, "check the connection and reload the page");
    const place = document.createElement("div");
    root.append(place);
    const reload = { label: "Reload the page", run: () => location.reload() };
    render(notice(failed, `“${entry.title}” could not be opened`, reload), place);
  } finally {
    clearTimeout(timer);
    waiting.remove();
  }
}

/** Moves the focus to the heading of the view, else to the view itself, so that screen readers announce it. */
function focusHeading(): void {
  const root = rootOf(current);
  const target = root.querySelector<HTMLElement>("h1") ?? root;
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
}

// --- Navigation --------------------------------------------------------------------------------

/** The address of a view: its last one, or its first one. All views have the bundle of the one shown. */
function addressOf(entry: ViewEntry, search: string): string {
  const { bundle, backend } = readAddress(COMMON, search);
  const name = entry === firstView ? null : entry.name;
  const known = opened.get(entry);
  if (known) return known.address.printWith(name, { bundle, backend }, known.ofBundle) || "?";
  return printAddress(name, COMMON, { bundle, backend, hide: [] }).search || "?";
}

function drawNavigation(search: string): void {
  const navigation = document.getElementById("views");
  if (!navigation) return;
  const links = VIEWS.map(
    (entry) =>
      html`<a href=${addressOf(entry, search)} aria-current=${entry === current ? "page" : "false"}>${entry.title}</a>`,
  );
  render(links, navigation);
}

/** Follows a link to a view without loading the page again. Other links are the browser's. */
function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.composedPath().find((element) => element instanceof HTMLAnchorElement);
  if (!link || link.target || link.hasAttribute("download")) return;
  write();
  const { origin, pathname, search, hash } = new URL(link.href);
  if (origin !== location.origin || pathname !== location.pathname || (hash && search === location.search)) return;
  event.preventDefault();
  if (search !== location.search) history.pushState(null, "", pathname + search + hash);
  void show(search).then(() => {
    focusHeading();
    const target = hash ? document.getElementById(hash.slice(1)) : null;
    if (target) target.scrollIntoView();
    else window.scrollTo({ top: 0, behavior: "instant" });
  });
}

// --- The address bar ---------------------------------------------------------------------------

let timer = 0;

function scheduleWrite(after = QUIET_MS): void {
  clearTimeout(timer);
  timer = setTimeout(write, after);
}

/** Writes the state of the view shown into the address bar. */
function write(): void {
  clearTimeout(timer);
  for (const [entry, view] of opened) {
    view.search = view.address.print(entry === firstView ? null : entry.name);
  }
  const { search } = opened.get(current) ?? location;
  if (search === location.search) return;
  drawNavigation(search);
  try {
    history.replaceState(history.state, "", location.pathname + search + location.hash);
  } catch {
    // Some browsers limit how often the address may change.
    scheduleWrite(1000);
  }
}
