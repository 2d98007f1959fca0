import { render } from "lit";
import { notice } from "../elements/notice.js";
import { toFailure } from "../failure.js";
import { addLocal } from "../local-bundles.js";
import "../map/akin-map.js";
import { GallerySource } from "../map/gallery-source.js";
import { chosenItems } from "../map/tree.js";
import { Session } from "../session.js";
import { provideEngine } from "./files.js";
import { Kernel } from "./kernel.js";
import { follow, tell, type Model, type Widget } from "./model.js";

/** The map of a bundle, whose files the kernel reads. Python knows what is shown, the query, and the chosen items. */
export function mapWidget(model: Model): Widget {
  const kernel = new Kernel(model);
  const place = document.createElement("div");
  const map = document.createElement("akin-map");
  place.append(map);
  let end = () => {};
  const open = async () => {
    await provideEngine(kernel);
    const bundle = addLocal(model.get("bundle") as string, () => kernel.port("bundle"));
    // Another map may show another bundle.
    const source = await GallerySource.open(new Session(), { bundle, backend: "cpu" });
    map.addEventListener("akin-change", () =>
      tell(model, {
        encoder: source.encoders[map.encoder]?.name ?? "",
        map: map.map,
        means: map.means,
        colour: map.colour,
        query: map.query,
        items: map.choice ? [...chosenItems(map.choice)] : [],
      }),
    );
    map.source = source;
    end = follow(model, ["hide", "encoder", "map", "means", "colour", "query"], () => {
      map.hide = model.get("hide") as string;
      map.encoder = source.encoderNamed(model.get("encoder") as string) ?? source.bestEncoder();
      map.map = model.get("map") as string;
      map.means = model.get("means") as boolean;
      map.colour = model.get("colour") as number;
      map.query = model.get("query") as number | null;
    });
  };
  open().catch((error: unknown) => render(notice(toFailure(error), "The map could not be opened."), place));
  return {
    element: place,
    close: () => {
      end();
      kernel.close();
    },
  };
}
