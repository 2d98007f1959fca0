import { html } from "lit";
import * as format from "../format.js";
import { nearness, relation } from "../kinship.js";
import type { Result } from "../messages/engine.js";
import { vars } from "../vars.js";

/** The first results at a glance: one bar each, higher for nearer kin. */
export function rankStrip(results: readonly Result[], levels: readonly string[]) {
  const depth = levels.length;
  const counts = Array.from(
    { length: depth + 1 },
    (_, level) => results.filter((result) => result.shared_level === level).length,
  );
  const summary = counts
    .map((count, level) => ({ count, level }))
    .reverse()
    .filter(({ count }) => count > 0)
    .map(({ count, level }) => `${count} ${relation(level, levels)}`)
    .join(", ");
  return html`<div class="strip-frame">
    <div
      class="strip"
      role="img"
      aria-label=${`The first ${format.count(results.length, "result")}: ${summary || "kinship unknown"}`}
    >
      ${results.map(
        ({ item, shared_level: shared }) =>
          html`<i
            class="kin"
            data-cell=${item}
            data-shared=${shared ?? "unknown"}
            ${vars({ "--near": nearness(shared ?? 0, depth), "--height": (shared ?? 0) / depth })}
          ></i>`,
      )}
    </div>
    <p class="strip-scale" aria-hidden="true"><span>rank 1</span><span>${results.length}</span></p>
  </div>`;
}
