import { classPath, type ClassChoice } from "../class-choice.js";
import { failure } from "../failure.js";
import type { Answered, Certain, Likeness, Ranked, Result, Vote } from "../messages/engine.js";
import type { OpenBundle } from "../session.js";
import { ServedCollection, ServedSprites, type ServedItem } from "./served-collection.js";

/** The most items of one answer of the server. */
const MOST = 1000;

/** What is searched with: an item of the collection, or the embedding of the reader's own picture. */
export type ServedQuery = { readonly item: number } | { readonly embedding: readonly number[] };

/** The answer of the server to a search. */
interface Answer {
  readonly items: readonly (ServedItem & { readonly score: number })[];
  /** Null where only some classes take part. */
  readonly neighbours: {
    readonly votes: readonly Vote[] | null;
    readonly answers: readonly Answered[] | null;
    readonly likeness: Likeness | null;
    /** The names of the classes above, from the coarsest level down. */
    readonly classes: readonly { readonly level: number; readonly class: number; readonly names: readonly string[] }[];
  } | null;
}

/**
 * A gallery that the server of the page searches, because it is larger than what the page holds. The page holds a sample
 * of it as a bundle. It sends the server the embeddings of the reader's pictures, and never the pictures.
 */
export class ServedGallery {
  readonly bundle: OpenBundle;
  private readonly collection: ServedCollection;

  private constructor(
    /** The sample. */
    readonly sample: OpenBundle,
    pictures: number,
    hasLabels: boolean,
  ) {
    this.collection = new ServedCollection(sample.collection, pictures, hasLabels);
    this.bundle = { collection: this.collection, sprites: new ServedSprites(this.collection, sample.sprites) };
  }

  /** The gallery of the server that the page comes from, of which a bundle holds a sample. */
  static async open(sample: OpenBundle): Promise<ServedGallery> {
    const { items, levels } = await ask<{ items: number; levels: unknown[] }>("gallery", null);
    return new ServedGallery(sample, items, levels.length > 0);
  }

  /** Whether an item has a place in an address: one of the sample, which keeps its number. */
  hasAddress(item: number): boolean {
    return item < this.collection.count;
  }

  /** The first `k` items of the class, or of all, and what the items that are nearest among all say. */
  async rank(query: ServedQuery, k: number, choice: ClassChoice | null): Promise<Ranked> {
    const { collection } = this;
    const asked = { ...this.named(query), count: Math.min(k, MOST), detailed: true };
    const names = classPath(collection, choice).map((id, index) => collection.className(index + 1, id));
    const [whole, within] = await Promise.all([
      ask<Answer>("search", asked),
      choice ? ask<Answer>("search", { ...asked, within: [names.join("/")] }) : null,
    ]);
    const { votes = null, answers = null, likeness = null, classes = [] } = whole.neighbours ?? {};
    const ids = new Map(
      classes.map(({ level, class: id, names }) => [`${level}.${id}`, collection.idsOf(names).at(-1)]),
    );
    const here = <T extends Vote | Certain>(said: T): T => ({
      ...said,
      class: ids.get(`${said.level}.${said.class}`) ?? 0,
    });
    return {
      results: (within ?? whole).items.map((told) => this.result(told, query)),
      votes: collection.depth > 0 ? (votes?.map(here) ?? null) : null,
      answers:
        answers?.map(({ answer, probable, ...rest }) => ({
          ...rest,
          answer: { ...answer, levels: answer.levels.map(here) },
          probable: probable && here(probable),
        })) ?? null,
      likeness,
      metrics: null,
      codes: null,
    };
  }

  /** The query as the server knows it. An item of the sample keeps its number there, whatever happens to the gallery. */
  private named(query: ServedQuery): object {
    if (!("item" in query)) return query;
    const told = this.collection.told(query.item);
    if (!told) return { sample: query.item };
    const { searchParams } = new URL(told.thumbnail, document.baseURI);
    return { item: told.item, version: searchParams.get("version") };
  }

  private result({ score, ...told }: Answer["items"][number], query: ServedQuery): Result {
    const { collection } = this;
    const item = collection.placeOf(told);
    const hasLabels = "item" in query && [item, query.item].every((item) => collection.labels(item).length > 0);
    const { shared, most } = hasLabels ? collection.shared(query.item, item) : { shared: null, most: null };
    return { item, score, shared_level: shared, may_share: most };
  }
}

/** Asks the server that the page comes from: with a body a search, else for what lies there. */
async function ask<T>(path: string, body: object | null): Promise<T> {
  const request = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(new URL(path, document.baseURI), { mode: "same-origin", ...request }).catch(() => null);
  const answer = (await response?.json().catch(() => null)) as
    (T & { error?: string; hint?: string }) | null | undefined;
  if (!response || !answer) {
    throw failure("server", "the server of this gallery does not answer", "start `akin serve` again, and try again");
  }
  if (!response.ok) throw failure("server", answer.error ?? `the server says ${response.status}`, answer.hint ?? "");
  return answer;
}
