import type { Manifest } from "../protocol.js";

/**
 * What makes two embeddings comparable: the weights of an encoder, and what is done to a picture before them. Two bundles
 * with the same encoder have the same text here; another training has another.
 */
export function identityOf(manifest: Manifest, encoder: number): string {
  const entry = manifest.encoders[encoder];
  const sha256 = (path: string | null | undefined) => manifest.files.find((file) => file.path === path)?.sha256 ?? null;
  return JSON.stringify([
    sha256(entry?.weights),
    sha256(entry?.onnx?.file),
    entry?.architecture ?? null,
    entry?.preprocessing ?? null,
  ]);
}
