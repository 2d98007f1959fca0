import { html, nothing } from "lit";
import { saveCanvas, saveChart } from "../chart-file.js";
import { sentence, toFailure } from "../failure.js";

/** Buttons below a chart that save it as `NAME.svg` or `NAME.png`. */
export function saveChartButtons(chart: () => SVGSVGElement | null, name: string) {
  const save = (format: "svg" | "png") => (event: Event) => {
    const svg = chart();
    if (svg) report(event, saveChart(svg, name, format));
  };
  return buttons(save("png"), save("svg"));
}

/** A button below a chart on a canvas that saves it as `NAME.png`. */
export function saveCanvasButton(chart: () => HTMLCanvasElement | null, name: string) {
  return buttons((event) => {
    const canvas = chart();
    if (canvas) report(event, saveCanvas(canvas, name));
  });
}

function buttons(savePng: (event: Event) => void, saveSvg?: (event: Event) => void) {
  return html`<p class="save-chart">
    <span class="soft">Save this chart as</span>
    ${saveSvg ? html`<button type="button" class="quiet" @click=${saveSvg}>SVG</button>` : nothing}
    <button type="button" class="quiet" @click=${savePng}>PNG</button>
    <span role="status"></span>
  </p>`;
}

/** Says beside the buttons if a chart could not be saved. */
function report(event: Event, saved: Promise<void>): void {
  const status = (event.currentTarget as Element).parentElement?.querySelector("[role=status]");
  const say = (text: string) => status && (status.textContent = text);
  saved.then(
    () => say(""),
    (error: unknown) => say(sentence(toFailure(error).message)),
  );
}
