// The files that the page's scripts load by themselves, for a notebook, where no server has them.

import science from "page:akin-science.js";
import scienceCode from "page:akin-science_bg.wasm";
import worker from "script:worker.ts";
import { unpack, type Kernel } from "./kernel.js";

const address = (content: BlobPart, type: string) => URL.createObjectURL(new Blob([content], { type }));
const SCRIPT = "text/javascript";
const CODE = "application/wasm";

let forScience: Promise<void> | null = null;
let forEngine: Promise<void> | null = null;

/** Gives the science its files, which this script holds, so that a notebook without a kernel has it, too. */
export const provideScience = (): Promise<void> =>
  (forScience ??= (async () => {
    provide({
      "akin-science.js": address(science, SCRIPT),
      "akin-science_bg.wasm": address(await unpack(scienceCode), CODE),
    });
  })());

/** Gives the engine its files. They are large, so the kernel is asked for them. */
export function provideEngine(kernel: Kernel): Promise<void> {
  forEngine ??= (async () => {
    const [module, code] = await Promise.all([kernel.unpacked("akin-web.js"), kernel.unpacked("akin-web_bg.wasm")]);
    const engine = { "akin-web.js": address(module, SCRIPT), "akin-web_bg.wasm": address(code, CODE) };
    const known = `globalThis.akinFiles = ${JSON.stringify(engine)};\n`;
    provide({ ...engine, "build/worker.js": address(known + worker, SCRIPT) });
  })();
  // Another kernel may answer.
  forEngine.catch(() => (forEngine = null));
  return forEngine;
}

function provide(files: Readonly<Record<string, string>>): void {
  globalThis.akinFiles = { ...globalThis.akinFiles, ...files };
}
