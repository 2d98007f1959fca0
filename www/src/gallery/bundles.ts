import { bundleAddress } from "../address.js";
import { failure } from "../failure.js";

/** A bundle of the index `bundles.json`. */
export interface BundleEntry {
  /** Its folder, relative to the page, as `?bundle=` names it. */
  path: string;
  title: string;
  description: string;
  /** Whether its gallery is a sample of a larger one, in which the server searches. */
  sample: boolean;
}

const SAFE_PATH = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/**
 * The galleries that the page offers: those of `bundles.json` beside it, or none where there is no such file.
 * The description of the bundle format says what the file holds.
 */
export async function loadBundles(): Promise<readonly BundleEntry[]> {
  const response = await fetch(new URL("bundles.json", document.baseURI), { mode: "same-origin" }).catch(() => null);
  if (!response?.ok) return [];
  const index: unknown = await response.json().catch(() => null);
  const { format, version, requires, bundles } = (index ?? {}) as Record<string, unknown>;
  const isKnown = format === "akin-bundles" && version === 1 && (requires === undefined || isEmpty(requires));
  if (!isKnown || !Array.isArray(bundles) || !bundles.every(isEntry)) {
    throw failure(
      "bundle",
      "bundles.json is not an index of bundles that this page can read",
      "correct it as the description of the bundle format says, or remove it",
    );
  }
  return bundles.map(({ path, title, description, sample }) => ({
    path: `${path}/`,
    title,
    description,
    sample: sample === true,
  }));
}

const isEmpty = (list: unknown) => Array.isArray(list) && list.length === 0;

function isEntry(entry: unknown): entry is BundleEntry {
  const { path, title, description } = (entry ?? {}) as Record<string, unknown>;
  const isText = typeof title === "string" && typeof description === "string";
  return isText && typeof path === "string" && SAFE_PATH.test(path);
}

/** Whether two names of bundles lead to the same folder. */
export function isSameBundle(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    return bundleAddress(a) === bundleAddress(b);
  } catch {
    return false;
  }
}
