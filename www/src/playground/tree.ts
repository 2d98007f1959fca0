// The taxonomy beside the ranking, with the path of the lit item, and its editor.

import { html, nothing, type TemplateResult } from "lit";
import { kinshipRing } from "../elements/kinship-ring.js";
import { nearness, relation } from "../kinship.js";
import { vars } from "../vars.js";
import { creature } from "./creature.js";
import {
  depth,
  dropLevel,
  growNode,
  addItem,
  MAX_ITEMS,
  pruneNode,
  removeItem,
  setQuery,
  splitLevel,
  type State,
} from "./state.js";
import {
  canAddLevel,
  children,
  givenName,
  LONGEST_NAME,
  MAX_CLASSES,
  nodeName,
  renameNode,
  sharedLevel,
  type Node,
} from "./taxonomy.js";

export interface TreeView {
  state: State;
  /** The class of the item that the reader points at. */
  lit: number | null;
  /** Whether the nodes are drawings and names of creatures, or only words for kinship. */
  creatures: boolean;
  editing: boolean;
  /** Whether there is an editor. */
  editable: boolean;
  /** The node whose name is being written. */
  renaming: Node | null;
  toggle(): void;
  /** Begins to write the name of a node, or ends it. Whether that has changed anything. */
  rename(node: Node | null): boolean;
  edit(what: string, state: State): void;
}

const inside = ({ first, last }: Node, index: number | null): boolean =>
  index !== null && index >= first && index <= last;

export function tree(view: TreeView) {
  const { state, editing } = view;
  const root: Node = { level: 0, first: 0, last: state.tree.classes.length - 1 };
  return html`<section class="tree" data-testid="tree" aria-labelledby="tree-title">
    <header>
      <h2 id="tree-title">Taxonomy</h2>
      ${
        view.editable
          ? html`<button type="button" class="quiet" aria-expanded=${editing} @click=${view.toggle}>
              ${editing ? "Done" : "Edit"}
            </button>`
          : nothing
      }
    </header>
    ${editing ? levelEditor(view) : nothing}
    <ul class="nodes" data-level="0">
      ${branches(view, root)}
    </ul>
    ${
      editing && state.tree.classes.length < MAX_CLASSES
        ? html`<button
            type="button"
            class="quiet grow"
            @click=${() => view.edit(`A new ${state.tree.levels[0] ?? "class"} joined.`, growNode(state, root))}
          >
            Add ${article(state.tree.levels[0] ?? "class")}
          </button>`
        : nothing
    }
  </section>`;
}

const article = (word: string): string => `${/^[aeiou]/i.test(word) ? "an" : "a"} ${word}`;

const branches = (view: TreeView, node: Node): TemplateResult[] =>
  children(view.state.tree, node).map((child) => branch(view, child));

function branch(view: TreeView, node: Node): TemplateResult {
  const { state } = view;
  const finest = node.level === depth(state);
  const shared = sharedLevel(state.tree, state.query, node.first);
  // What an item at this node shares with the query: at most the node's own level.
  const kin = Math.min(shared, node.level);
  const own = inside(node, state.query);
  const count = state.items.filter((of) => inside(node, of)).length;
  const name = view.creatures
    ? nodeName(state.tree, node)
    : givenName(state.tree, node) ||
      (finest ? relation(shared, state.tree.levels) : (state.tree.levels[node.level - 1] ?? ""));
  const isRenamed = view.editing && isSame(view.renaming, node);
  const look = state.tree.classes[node.first];
  return html`<li
    class="node kin"
    data-own=${own}
    data-lit=${inside(node, view.lit)}
    data-shared=${kin}
    data-level=${node.level}
    ${vars({ "--near": nearness(kin, depth(state)) })}
  >
    <span class="node-line">
      ${
        finest
          ? html`${view.creatures && look ? creature(look) : nothing}${kinshipRing(kin, depth(state))}`
          : html`<span class="level-name">${view.creatures ? state.tree.levels[node.level - 1] : nothing}</span>`
      }
      ${isRenamed ? nameField(view, node, name) : html`<span class="node-name">${name}</span>`}
      ${finest ? html`<span class="count number" title=${`${count} in the ranking`}>×${count}</span>` : nothing}
      ${finest && own ? html`<span class="tag">query</span>` : nothing}
      ${view.editing && !isRenamed ? nodeEditor(view, node, name, finest, own) : nothing}
    </span>
    ${
      finest
        ? nothing
        : html`<ul class="nodes">
            ${branches(view, node)}
          </ul>`
    }
  </li>`;
}

const isSame = (one: Node | null, other: Node): boolean => one?.level === other.level && one.first === other.first;

/** Enter and leaving the field keep the name, Escape does not. Without a name the node has its usual one. */
function nameField(view: TreeView, node: Node, name: string) {
  const end = (event: Event, kept: boolean) => {
    // A field that is taken away loses the focus, too.
    if (!view.rename(null)) return;
    const { value } = event.target as HTMLInputElement;
    if (!kept || value === name) return;
    const tree = renameNode(view.state.tree, node, value);
    view.edit(`The ${name} is now called ${nodeName(tree, node)}.`, { ...view.state, tree });
  };
  return html`<input
    class="name-field"
    aria-label=${`Name of the ${name}`}
    maxlength=${LONGEST_NAME}
    .value=${name}
    @blur=${(event: Event) => end(event, true)}
    @keydown=${(event: KeyboardEvent) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      end(event, event.key === "Enter");
    }}
  />`;
}

function nodeEditor({ state, edit, rename }: TreeView, node: Node, name: string, finest: boolean, own: boolean) {
  const child = state.tree.levels[node.level] ?? "class";
  const button = (label: string, sign: string, disabled: boolean, act: () => void) =>
    html`<button type="button" class="small" aria-label=${label} title=${label} ?disabled=${disabled} @click=${act}>
      ${sign}
    </button>`;
  return html`<span class="node-edit">
    <button
      type="button"
      class="small"
      data-rename="${node.level}.${node.first}"
      aria-label=${`Rename the ${name}`}
      title=${`Rename the ${name}`}
      @click=${() => rename(node)}
    >
      Aa
    </button>
    ${
      finest
        ? html`${button(`Add a ${name} to the ranking`, "+", state.items.length >= MAX_ITEMS, () => edit(`A ${name} joined at the end.`, addItem(state, node.first)))}
          ${button(`Remove a ${name} from the ranking`, "−", !state.items.includes(node.first), () => edit(`A ${name} left the ranking.`, removeItem(state, node.first)))}
          ${own ? nothing : button(`Make the ${name} the query`, "?", false, () => edit(`The query is now a ${name}.`, setQuery(state, node.first)))}`
        : button(`Add ${article(child)} to the ${name}`, "+", state.tree.classes.length >= MAX_CLASSES, () =>
            edit(`A new ${child} joined.`, growNode(state, node)),
          )
    }
    ${own ? nothing : button(`Remove the ${name} with its items`, "×", false, () => edit(`The ${name} left with its items.`, pruneNode(state, node)))}
  </span>`;
}

function levelEditor({ state, edit }: TreeView) {
  const { levels } = state.tree;
  return html`<div class="level-editor" role="group" aria-label="Levels">
    <ol>
      ${levels.map(
        (name, index) =>
          html`<li>
            <span>${index + 1} ${name}</span>
            <button
              type="button"
              class="small"
              aria-label=${`Remove the level ${name}`}
              title=${`Remove the level ${name}`}
              ?disabled=${levels.length === 1}
              @click=${() => edit(`The level ${name} is gone${levels.length === 2 ? ": with one level left, H-AP is AP" : ""}.`, dropLevel(state, index + 1))}
            >
              ×
            </button>
          </li>`,
      )}
    </ol>
    <button
      type="button"
      class="quiet"
      ?disabled=${!canAddLevel(state.tree)}
      @click=${() => edit("Every class became two at a new, finest level.", splitLevel(state))}
    >
      Add a finer level
    </button>
  </div>`;
}
