import { html, nothing } from "lit";
import { classPath, type ClassChoice } from "../class-choice.js";
import type { Collection } from "../collection.js";

/** The choice of the class whose results are shown: one list for each level, the next one when a class is chosen. */
export function classFilter(
  collection: Collection,
  chosen: ClassChoice | null,
  choose: (choice: ClassChoice | null) => void,
) {
  const path = classPath(collection, chosen);
  const list = (name: string, index: number) => {
    const classes = collection.children(index + 1, path[index - 1] ?? null);
    const take = (event: Event) => {
      const { value } = event.target as HTMLSelectElement;
      const above = path[index - 1];
      if (value !== "") choose({ level: index + 1, id: Number(value) });
      else choose(above === undefined ? null : { level: index, id: above });
    };
    return html`<select aria-label=${`Show only results of one ${name}`} data-filter=${index + 1} @change=${take}>
      <option value="" ?selected=${path[index] === undefined}>every ${name}</option>
      ${classes.map(({ id, name }) => html`<option value=${id} ?selected=${path[index] === id}>${name}</option>`)}
    </select>`;
  };
  const levels = collection.classLevels.slice(0, path.length + 1);
  return collection.depth === 0
    ? nothing
    : html`<div class="field class-filter" role="group" aria-label="Filter the results" data-testid="class-filter">
        <span>Show</span> ${levels.map(list)}
      </div>`;
}
