// The files that the page's scripts load by themselves: modules, workers, fonts.

declare global {
  /** The addresses of the page's files where no server has them: a notebook gives its widgets the files. */
  var akinFiles: Readonly<Record<string, string>> | undefined;
}

/** The address of a file, named from the folder of the page: `akin-web.js`, `build/worker.js`. */
export const pageFile = (path: string): string =>
  globalThis.akinFiles?.[path] ?? new URL(`../${path}`, import.meta.url).href;
