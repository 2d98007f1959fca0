import { failure } from "../failure.js";
import { pictureBytes } from "../picture-file.js";
import type { OpenBundle } from "../session.js";

/** A picture that the encoder looks at. */
export interface Picture {
  bytes: Uint8Array;
  /** An address that an `<img>` shows, to be revoked. */
  url: string;
  /** The side of the thumbnail in pixels; null for an original. */
  thumbnail: number | null;
}

export async function originalPicture(file: Blob): Promise<Picture> {
  return { bytes: await pictureBytes(file), url: URL.createObjectURL(file), thumbnail: null };
}

/** The thumbnail of an item: a bundle has no larger pictures. */
export async function thumbnailPicture(item: number, { collection, sprites }: OpenBundle): Promise<Picture> {
  const { tile } = collection.manifest.thumbnails;
  const place = sprites.place(item);
  const image = new Image();
  image.src = (await sprites.sheet(place.sheet)).url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = tile;
  canvas.getContext("2d")?.drawImage(image, -place.column * tile, -place.row * tile);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw failure("image", "the thumbnail could not be drawn", "try again, or reload the page");
  return { ...(await originalPicture(blob)), thumbnail: tile };
}
