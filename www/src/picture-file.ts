// Pictures as readers have them: what the engine cannot read, the browser may.

import { failure } from "./failure.js";

/** The pictures that an input takes. */
export const PICTURES = "image/jpeg,image/png,image/webp,image/gif,image/bmp,image/avif,image/heic";

/** The formats that the browser decodes, if it can, because the engine does not: those of the ISO base media file format. */
const isForBrowser = (bytes: Uint8Array): boolean =>
  /^ftyp(avif|avis|heic|heix|heim|heis|hevc|hevx|mif1|msf1)/.test(String.fromCharCode(...bytes.subarray(4, 12)));

/**
 * The bytes of a picture for the engine. An AVIF or HEIC picture becomes a PNG with the pixels that the browser shows,
 * without colour management. If the browser cannot read it, the engine gets it as it is and says what it is. Fails if
 * the file was changed or removed since it was chosen.
 */
export async function pictureBytes(file: Blob): Promise<Uint8Array> {
  const buffer = await file.arrayBuffer().catch(() => {
    throw failure("image", "the file cannot be read any more", "choose it again");
  });
  const bytes = new Uint8Array(buffer);
  if (!isForBrowser(bytes)) return bytes;
  const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).catch(
    () => null,
  );
  if (!bitmap) return bytes;
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
  bitmap.close();
  return new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
}
