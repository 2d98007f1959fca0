// The classes beside the map as a tree that opens and closes.

import { html, nothing } from "lit";
import { kinshipRing } from "../elements/kinship-ring.js";
import { levelRows, relation } from "../kinship.js";
import { vars } from "../vars.js";
import type { QueryScores } from "./gallery-source.js";
import { classMark, kinMark, markIcon } from "./marks.js";
import { meanOfClass, type ClassNode, type ClassTree } from "./tree.js";

/** The most classes that the tree opens for by itself. */
const MOST_OPEN = 30;

interface Shown {
  /** The level of the colours; 0 for kinship to the query. */
  level: number;
  chosen: ClassNode | null;
  scores: QueryScores | null;
}

interface Actions {
  /** Draws again. Resolves when that is done. */
  changed: () => Promise<unknown>;
  choose: (node: ClassNode) => void;
}

export class ClassPanel {
  private open: ReadonlySet<ClassNode> = new Set();
  /** The class that Tab reaches. */
  private stop: ClassNode | null;

  constructor(
    readonly tree: ClassTree,
    private readonly actions: Actions,
  ) {
    this.stop = tree.roots[0] ?? null;
  }

  /** Opens the tree as far as a level, whose marks then stand in it, unless that is long. */
  openTo(level: number): void {
    const { levels } = this.tree;
    if ((levels[level - 1]?.length ?? 0) > MOST_OPEN) return;
    this.open = new Set([...this.open, ...levels.slice(0, Math.max(0, level - 1)).flat()]);
  }

  /** Opens the tree so that a class can be seen. */
  reveal(node: ClassNode | null): void {
    const open = new Set(this.open);
    for (let parent = node?.parent; parent; parent = parent.parent) open.add(parent);
    this.open = open;
  }

  private toggle(node: ClassNode): void {
    const open = new Set(this.open);
    if (!open.delete(node)) open.add(node);
    this.open = open;
    void this.actions.changed();
  }

  /** The nodes of the tree that can be seen, from the top. */
  private visible(nodes = this.tree.roots): ClassNode[] {
    return nodes.flatMap((node) => [node, ...(this.open.has(node) ? this.visible(node.children) : [])]);
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    const nodes = this.visible();
    const at = nodes.findIndex((node) => node === this.stop);
    const node = nodes[at];
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    let next: ClassNode | undefined = node;
    if (event.key === "ArrowDown") next = nodes[at + 1];
    else if (event.key === "ArrowUp") next = nodes[at - 1];
    else if (event.key === "Home") next = nodes[0];
    else if (event.key === "End") next = nodes.at(-1);
    else if (event.key === "ArrowRight" && node.children.length > 0) {
      if (this.open.has(node)) next = node.children[0];
      else this.toggle(node);
    } else if (event.key === "ArrowLeft") {
      if (this.open.has(node)) this.toggle(node);
      else next = node.parent ?? undefined;
    } else if (event.key === "Enter" || event.key === " ") this.actions.choose(node);
    else return;
    event.preventDefault();
    this.stop = next ?? node;
    const list = event.currentTarget as HTMLElement;
    void this.actions.changed().then(() => list.querySelector<HTMLElement>("[role=treeitem][tabindex='0']")?.focus());
  };

  render(shown: Shown) {
    const { depth, levels, reach } = this.tree.collection;
    return html`<div class="side">
      ${
        shown.level === 0
          ? html`<ul class="kinds" aria-label="Kinship to the query">
              ${[...levelRows(depth).map((index) => index + 1), 0].map(
                (shared) =>
                  html`<li>
                    ${markIcon(kinMark(shared, depth))} ${kinshipRing(shared, reach)} ${relation(shared, levels)}
                  </li>`,
              )}
            </ul>`
          : nothing
      }
      <p class="side-head" id="tree-name">
        <span>Classes</span><span class="soft">items${shown.scores?.has("h_ap") ? ", mean H-AP" : ""}</span>
      </p>
      <ul role="tree" aria-labelledby="tree-name" data-testid="tree" @keydown=${this.onKey}>
        ${this.visible().map((node) => this.item(node, shown))}
      </ul>
    </div>`;
  }

  private item(node: ClassNode, { level, chosen, scores }: Shown) {
    const isOpen = this.open.has(node);
    const isLeaf = node.children.length === 0;
    const siblings = node.parent?.children ?? this.tree.roots;
    const score = meanOfClass(node, scores);
    return html`<li
      role="treeitem"
      aria-level=${node.level}
      aria-setsize=${siblings.length}
      aria-posinset=${siblings.indexOf(node) + 1}
      aria-expanded=${isLeaf ? nothing : isOpen}
      aria-selected=${node === chosen}
      tabindex=${node === this.stop ? 0 : -1}
      data-level=${node.level}
      data-class=${node.id}
      data-items=${node.items.length}
      ${vars({ "--depth": node.level - 1, "--score": score ?? 0 })}
      @click=${() => {
        this.stop = node;
        this.actions.choose(node);
      }}
      @focus=${() => {
        this.stop = node;
        void this.actions.changed();
      }}
    >
      <span
        class="twist"
        data-open=${isOpen}
        data-leaf=${isLeaf}
        @click=${(event: Event) => {
          event.stopPropagation();
          if (!isLeaf) this.toggle(node);
        }}
      ></span>
      ${node.level === level ? markIcon(classMark(node.place)) : nothing}
      <span class="node-name">${node.name}</span>
      <span class="number soft">${node.items.length}<span class="visually-hidden"> items</span></span>
      ${score === null ? html`<span></span>` : html`<span class="node-score number"><span class="visually-hidden">mean H-AP </span>${score.toFixed(2)}</span>`}
    </li>`;
  }
}
