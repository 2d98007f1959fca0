import { AkinApp } from "../search/akin-app.js";
import { parameters } from "../search/parameters.js";
import { defineView } from "./view.js";

declare global {
  interface Window {
    /** For tests and experiments: the embedding of an image file's bytes by an encoder (name or index). */
    akin: { embed(encoder: string | number, image: Uint8Array): Promise<number[]> };
  }
}

/** Search with a picture. The introduction and the place of the tool stand in index.html, to be read before any script. */
export const view = defineView({
  parameters,
  ofBundle: ["q", "k", "class", "look"],
  open({ root, address }) {
    const app = root.querySelector("akin-app");
    if (!(app instanceof AkinApp)) throw new Error("this page has no <akin-app>");
    window.akin = { embed: (encoder, image) => app.embed(encoder, image) };
    app.start(address);
  },
});
