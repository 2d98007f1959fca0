import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";
import type { Vote } from "../messages/engine.js";
import { vars } from "../vars.js";

/** The votes of an encoder's nearest pictures. */
export interface Votes {
  readonly encoder: string;
  readonly votes: readonly Vote[];
  /** Whether the nearest pictures are not near. */
  readonly unlike: boolean;
}

/** The votes of the nearest pictures for the class of an unknown one, level by level. Names the encoder if there are two. */
export function voteTable({ encoder, votes, unlike }: Votes, collection: Collection, named: boolean) {
  return html`<table class="votes" data-testid="votes" data-encoder=${encoder} ?data-unlike=${unlike}>
    <caption>
      ${unlike ? "Votes of the least unlike pictures" : "Votes of the nearest pictures"}${named ? `, by ${encoder}` : nothing}
    </caption>
    <thead class="visually-hidden">
      <tr>
        <th scope="col">Level</th>
        <th scope="col">Class</th>
        <th scope="col">Share of the votes</th>
      </tr>
    </thead>
    <tbody>
      ${votes.map(
        ({ level, class: id, share }) =>
          html`<tr data-vote=${level} data-class=${id} data-value=${share}>
            <th scope="row">${collection.levels[level - 1]}</th>
            <td class="name">${collection.className(level, id)}</td>
            <td class="number">${format.percent(share)}<i class="gauge" ${vars({ "--share": share })}></i></td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
