// The open bundle and the engine that answers questions about it. All views of the page share one session,
// so that the engine and the bundle are loaded once. Nothing is loaded before a view asks for it.

import { bundleAddress } from "./address.js";
import { Client, type PhaseProgress } from "./client.js";
import { Collection } from "./collection.js";
import { failure, type Failure } from "./failure.js";
import { isLocal, localFiles } from "./local-bundles.js";
import { RUNTIME } from "./onnx-runtime.js";
import type { Backend, Calls, EncoderEntry, Parity, Phase, Running } from "./protocol.js";
import { Sprites, type SpriteSource } from "./sprites.js";

export interface OpenBundle {
  readonly collection: Collection;
  readonly sprites: SpriteSource;
}

/** What names a bundle and the way to run it: the parameters of every view. */
export interface Source {
  readonly bundle: string;
  readonly backend: Backend | null;
}

/** A download that waits for the reader, because it is large. */
export interface Offer {
  /** The encoder that would be loaded. */
  readonly name: string;
  readonly bytes: number;
  /** The bytes among them that are ONNX Runtime; 0 if the encoder needs none. */
  readonly runtime: number;
  accept(): void;
}

/** A download of more bytes than this is offered, not begun. */
const LARGE_DOWNLOAD = 10_000_000;

/** After more restarts than this, the session waits until the reader tries again. */
const MAX_RESTARTS = 2;

/**
 * Fires `change` when progress or back end have changed, `lost` when the engine is gone, and `replaced` when the server
 * has another bundle now than the open one. After `lost`, a view calls `open` again and repeats what it had asked.
 */
export class Session extends EventTarget {
  /** The bytes of each phase of loading. */
  phases: ReadonlyMap<Phase, PhaseProgress> = new Map();
  running: Running | null = null;
  /** The name of the reader's own picture, while it is the query. Nothing keeps it when the page is loaded again. */
  ownPicture: string | null = null;
  /** The name of the encoder that is being loaded. */
  loadingEncoder: string | null = null;
  /** The download that waits for the reader. */
  offer: Offer | null = null;
  /** How far the encoders of the bundle agree with the trainer, in the order of the checks. */
  parities: readonly Parity[] = [];

  private opening: Promise<OpenBundle> | null = null;
  private bundle: (OpenBundle & { readonly address: string }) | null = null;
  private source: Source = { bundle: "", backend: null };
  private readonly encoders = new Map<number, Promise<void>>();
  /** The encoders that are loaded. */
  private readonly loaded = new Set<number>();
  /** The encoders whose download the reader accepted. */
  private readonly accepted = new Set<string>();
  private withdrawOffer: (() => void) | null = null;
  /** Why the next engine must run on the CPU. */
  private cpuReason: string | null = null;
  private restarts = 0;
  private lastLoss: Failure | null = null;
  private readonly client = new Client({
    progress: (phases) => this.change(() => (this.phases = phases)),
    running: (running) => this.change(() => (this.running = running)),
    parity: (parity) => this.change(() => (this.parities = withParity(this.parities, parity))),
    died: (failure) => this.lose(failure),
    replaced: () => this.dispatchEvent(new Event("replaced")),
  });

  /** Opens a bundle, unless it is open or being opened. The engine starts with the first one. */
  open(source: Source): Promise<OpenBundle> {
    const isSame = this.isCurrent(source);
    if (this.opening && isSame) return this.opening;
    if (!isSame) this.stop("another bundle or back end was chosen");
    this.source = source;
    const opening = this.load(source);
    this.opening = opening;
    // A failed opening can be tried again, in a new worker, which downloads the files again.
    opening.catch(() => this.opening === opening && this.stop("the bundle could not be opened"));
    return opening;
  }

  private async load({ bundle, backend }: Source): Promise<OpenBundle> {
    const files = isLocal(bundle) ? localFiles(bundle) : null;
    const address = files ? bundle : bundleAddress(bundle);
    if (this.lastLoss && this.restarts > MAX_RESTARTS) {
      this.restarts = 0;
      throw this.lastLoss;
    }
    this.change(() => {
      this.phases = new Map();
      this.parities = [];
    });
    const { manifest, labels, running } = await this.client.call(
      "open",
      { bundle: address, files, backend, cpuReason: this.cpuReason },
      files instanceof MessagePort ? [files] : [],
    );
    this.change(() => (this.running = running));
    // After a restart the bundle is the same, and what shows it can stay.
    if (this.bundle?.address !== address) {
      const sprites = new Sprites(this.client, manifest.thumbnails);
      this.bundle = { address, collection: new Collection(manifest, labels), sprites };
    }
    return this.bundle;
  }

  /** Loads an encoder of the open bundle, unless it is loaded or being loaded. */
  encoder(index: number): Promise<void> {
    let load = this.encoders.get(index);
    if (!load) {
      load = this.accept(index).then(() => {
        if (this.encoders.get(index) === load) this.loaded.add(index);
      });
      this.encoders.set(index, load);
      load.catch(() => this.encoders.get(index) === load && this.encoders.delete(index));
      void load.catch(() => {}).then(() => this.change(() => (this.loadingEncoder = null)));
    }
    return load;
  }

  /** Whether this encoder of this bundle is loaded, so that it answers without waiting. */
  isReady(source: Source, encoder: number): boolean {
    return this.isCurrent(source) && this.loaded.has(encoder);
  }

  private isCurrent({ bundle, backend }: Source): boolean {
    return bundle === this.source.bundle && backend === this.source.backend;
  }

  /** Loads an encoder, if it is large only when the reader accepts the download. */
  private accept(index: number): Promise<unknown> {
    const entry = this.entries()[index];
    const load = () => {
      this.change(() => (this.loadingEncoder = entry?.name ?? null));
      return this.client.call("encoder", { index });
    };
    const runtime = entry?.onnx ? RUNTIME[this.running?.backend ?? "cpu"].bytes : 0;
    const bytes = (entry && !isLocal(this.source.bundle) ? this.bytesOf(entry) : 0) + runtime;
    if (!entry || bytes <= LARGE_DOWNLOAD) return load();
    const key = `${this.source.bundle} ${entry.gallery_embeddings}`;
    if (this.accepted.has(key)) return load();
    this.withdrawOffer?.();
    return new Promise<void>((resolve, reject) => {
      const end = () => {
        this.withdrawOffer = null;
        this.change(() => (this.offer = null));
      };
      const accept = () => {
        this.accepted.add(key);
        end();
        resolve();
      };
      this.withdrawOffer = () => {
        end();
        reject(failure("stopped", "the download was not begun", ""));
      };
      this.change(() => (this.offer = { name: entry.name, bytes, runtime, accept }));
    }).then(load);
  }

  /** The bytes of the files that an encoder needs. */
  private bytesOf({ weights, gallery_embeddings, query_embeddings, onnx }: EncoderEntry): number {
    const paths = [weights, gallery_embeddings, query_embeddings, onnx?.file];
    const files = this.bundle?.collection.manifest.files ?? [];
    return files.reduce((sum, { path, bytes }) => (paths.includes(path) ? sum + bytes : sum), 0);
  }

  /** Asks the engine. Its encoder must have been loaded. What is in `transfer` leaves the page. */
  call<K extends keyof Calls>(
    kind: K,
    params: Calls[K]["params"],
    transfer: Transferable[] = [],
  ): Promise<Calls[K]["result"]> {
    return this.client.call(kind, params, transfer);
  }

  /** The addresses of the files that the engine's worker has loaded. */
  async files(): Promise<string[]> {
    if (!this.opening) return [];
    return this.client.call("files", {}).catch(() => []);
  }

  entries(): readonly EncoderEntry[] {
    return this.bundle?.collection.manifest.encoders ?? [];
  }

  /** The number of the encoder with this name. */
  encoderNamed(name: string | null): number | null {
    const index = this.entries().findIndex((encoder) => encoder.name === name);
    return index < 0 ? null : index;
  }

  private lose(failure: Failure): void {
    this.restarts++;
    this.lastLoss = failure;
    this.cpuReason = `The engine was restarted because ${failure.message}.`;
    this.forget();
    this.dispatchEvent(new Event("lost"));
  }

  private stop(reason: string): void {
    this.client.stop(failure("stopped", reason, ""));
    this.cpuReason = null;
    this.restarts = 0;
    this.forget();
  }

  /** Forgets what the engine that is gone had loaded. */
  private forget(): void {
    this.opening = null;
    this.withdrawOffer?.();
    this.encoders.clear();
    this.loaded.clear();
  }

  private change(set: () => void): void {
    set();
    this.dispatchEvent(new Event("change"));
  }
}

/** The checks with another one, which replaces that of the same encoder on the same back end. */
const withParity = (parities: readonly Parity[], parity: Parity): Parity[] => [
  ...parities.filter(({ encoder, backend }) => encoder !== parity.encoder || backend !== parity.backend),
  parity,
];

/** Whether a call failed only because its engine was stopped. The view has asked again, or will when it hears `lost`. */
export const isStopped = ({ code }: Failure): boolean => code === "stopped" || code === "worker";

export const session = new Session();
