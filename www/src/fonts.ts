// The fonts of the page, for a page of somebody else: a shadow root cannot bring fonts along, as they belong to the document.

import sansFile from "@fontsource-variable/source-sans-3/files/source-sans-3-latin-wght-normal.woff2";
import serifFile from "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-normal.woff2";

/** The address of each font by its name in the stylesheets. */
export const FONTS = {
  "Source Sans 3 Variable": new URL(sansFile, import.meta.url).href,
  "Source Serif 4 Variable": new URL(serifFile, import.meta.url).href,
};

export function addFonts(): void {
  for (const [family, address] of Object.entries(FONTS)) {
    const source = `url("${address}") format("woff2")`;
    document.fonts.add(new FontFace(family, source, { weight: "200 900", display: "swap" }));
  }
}
