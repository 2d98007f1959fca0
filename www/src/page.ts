import "./elements/theme-toggle.js";
import { AkinApp } from "./elements/akin-app.js";

declare global {
  interface Window {
    /** For tests and the curious: the embedding that an encoder (name or index) gives an image file's bytes. */
    akin: { embed(encoder: string | number, image: Uint8Array): Promise<number[]> };
  }
}

window.akin = {
  async embed(encoder, image) {
    const app = document.querySelector("akin-app");
    if (!(app instanceof AkinApp)) throw new Error("there is no <akin-app> on this page");
    return app.embed(encoder, image);
  },
};
