import type { MapCanvas } from "../engine.js";
import { toFailure } from "../failure.js";
import type { MapMessage, MapReply } from "./gpu-messages.js";

/** Draws in the engine's worker what the page sends through `port`. */
export function serveMap(map: MapCanvas, port: MessagePort): void {
  const reply = (message: MapReply) => port.postMessage(message);
  const fail = (error: unknown) => reply({ failure: toFailure(error) });
  port.addEventListener("message", ({ data }: MessageEvent<MapMessage>) => {
    try {
      if (data.kind === "close") port.close();
      handle(map, data)?.then(() => reply({ drawn: true }), fail);
    } catch (error) {
      fail(error);
    }
  });
  port.start();
  reply({ tiles: map.tiles() });
}

function handle(map: MapCanvas, message: MapMessage): Promise<void> | null {
  switch (message.kind) {
    case "marks":
      map.set_marks(message.marks);
      return null;
    case "items":
      map.set_items(message.points, message.marks, message.above);
      return null;
    case "tile":
      map.set_tile(message.tile, message.picture);
      return null;
    case "close":
      map.free();
      return null;
    case "frame":
      return map.draw(message.view, message.lines, message.pictures);
  }
}
