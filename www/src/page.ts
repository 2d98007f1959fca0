import "./elements/theme-toggle.js";
import { AkinApp } from "./elements/akin-app.js";

declare global {
  interface Window {
    /** For tests and experiments: the embedding of an image file's bytes by an encoder (name or index). */
    akin: { embed(encoder: string | number, image: Uint8Array): Promise<number[]> };
  }
}

window.akin = {
  async embed(encoder, image) {
    const app = document.querySelector("akin-app");
    if (!(app instanceof AkinApp)) throw new Error("this page has no <akin-app>");
    return app.embed(encoder, image);
  },
};
