import "../report/akin-report.js";
import type { ReportData } from "../report/report-data.js";
import { bytesOf, follow, tell, type Model, type Widget } from "./model.js";

/** The numbers of an array that Python sent as bytes. Copied, because they may begin at any byte. */
const buffer = (value: unknown): ArrayBuffer => bytesOf(value).slice().buffer;

/** The scores of an evaluation. Python knows the chosen query. */
export function reportWidget(model: Model): Widget {
  const element = document.createElement("akin-report");
  const given = model.get("report") as Omit<ReportData, "scores" | "labels" | "rows">;
  element.data = {
    ...given,
    scores: new Float32Array(buffer(model.get("scores"))),
    labels: new Uint32Array(buffer(model.get("labels"))),
    rows: new Uint32Array(buffer(model.get("rows"))),
  };
  element.addEventListener("change", () => tell(model, { query: element.query }));
  const end = follow(model, ["query"], () => (element.query = model.get("query") as number | null));
  return { element, close: end };
}
