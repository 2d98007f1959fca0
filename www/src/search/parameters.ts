import { text, whole } from "../address.js";

/** The number of results shown at first, and added by each “Show more”. */
export const PAGE = 24;

/** The state of the search that its address holds. */
export const parameters = {
  /** The query, if it is an item of the bundle. */
  q: whole(null),
  /** The name of the encoder shown. */
  encoder: text(null),
  /** The name of the encoder shown beside it. */
  compare: text(null),
  /** The number of results shown. */
  k: whole(PAGE, { min: 1 }),
  /** The class whose results are shown: its level and its number, `2.17`. */
  class: text(""),
  /** The result of which the page shows where the encoder looks, `17`, or `17.2` for the second encoder. */
  look: text(""),
};
