// How many pictures a gallery made in the browser holds: as many as memory allows.

/** The memory that a picture needs beside its embedding: its share of a thumbnail sheet, its name and its labels. */
const BYTES_BESIDE = 6000;
/** The page, its worker and the engine hold an embedding five times in all, in numbers of four bytes. */
const BYTES_OF_NUMBER = 5 * 4;
/** A gallery of 10,000 pictures at 512 dimensions always fits. */
const LEAST = 10_000 * (512 * BYTES_OF_NUMBER + BYTES_BESIDE);
/** The engine addresses 4 GB, in which the encoder also needs room. */
const MOST = 1_000_000_000;

/** An eighth of the memory of the device, in GB, which only some browsers tell. */
function room(): number {
  const { deviceMemory = 4 } = navigator as Navigator & { deviceMemory?: number };
  return Math.min(MOST, Math.max(LEAST, deviceMemory * 1e9 * 0.125));
}

/** The most pictures that a gallery holds with embeddings of this dimension, in round numbers. */
export function mostPictures(dimension: number): number {
  const pictures = room() / (dimension * BYTES_OF_NUMBER + BYTES_BESIDE);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(pictures)) - 1);
  return Math.floor(pictures / unit) * unit;
}
