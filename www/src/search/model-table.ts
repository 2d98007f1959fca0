import { html, nothing } from "lit";
import * as format from "../format.js";
import { levelRows } from "../kinship.js";
import type { EncoderEntry } from "../protocol.js";
import type { Report } from "../messages/engine.js";
import { vars } from "../vars.js";

/** The means of the encoders' metrics over all queries of the bundle. Of many levels, some. */
export function modelTable(encoders: readonly EncoderEntry[], levels: readonly string[]) {
  const finest = levelRows(levels.length).map((index) => ({ name: levels[index] ?? "", index }));
  const levelReport = (report: Report | null, index: number) => report?.levels?.[index];
  const rows: { name: string; value: (report: Report | null) => number | null | undefined }[] = [
    { name: "H-AP", value: (report) => report?.overall?.h_ap },
    ...finest.map(({ name, index }) => ({
      name: `AP ${name}`,
      value: (report: Report | null) => levelReport(report, index)?.ap,
    })),
    ...finest.map(({ name, index }) => ({
      name: `R@1 ${name}`,
      value: (report: Report | null) => levelReport(report, index)?.["recall@1"],
    })),
    ...finest.map(({ name, index }) => ({
      name: `mAP@R ${name}`,
      value: (report: Report | null) => levelReport(report, index)?.map_at_r,
    })),
    { name: "NDCG", value: (report) => report?.overall?.ndcg },
    { name: "ASI", value: (report) => report?.overall?.asi },
  ];
  const present = rows.filter(({ value }) => encoders.some(({ report }) => typeof value(report) === "number"));
  if (present.length === 0) return nothing;
  return html`<table class="metrics models" data-testid="report">
    <caption>
      Means over all queries
    </caption>
    <thead>
      <tr>
        <th scope="col">Score</th>
        ${encoders.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${present.map(({ name, value }) => {
        const values = encoders.map(({ report }) => value(report));
        const best = Math.max(...values.map((value) => value ?? 0));
        return html`<tr class=${name === "H-AP" ? "headline" : ""}>
          <th scope="row">${name}</th>
          ${values.map(
            (value) =>
              html`<td class="number" data-best=${encoders.length > 1 && value === best}>
                ${format.score(value)}<i class="gauge" ${vars({ "--share": value ?? 0 })}></i>
              </td>`,
          )}
        </tr>`;
      })}
    </tbody>
  </table>`;
}
