/** The state that a widget shares with Python, as anywidget gives it. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: (...values: never[]) => void): void;
  off(event: string, listener: (...values: never[]) => void): void;
  send(content: unknown): void;
}

export interface Context {
  model: Model;
  el: HTMLElement;
}

/** A widget in the notebook: its element, and what ends it. */
export interface Widget {
  element: HTMLElement;
  close(): void;
}

/** Calls a listener now, and whenever Python sets one of the values. Returns what stops it. */
export function follow(model: Model, names: readonly string[], listener: () => void): () => void {
  for (const name of names) model.on(`change:${name}`, listener);
  listener();
  return () => {
    for (const name of names) model.off(`change:${name}`, listener);
  };
}

/** Tells Python the values that differ from those that it knows. */
export function tell(model: Model, values: Readonly<Record<string, unknown>>): void {
  const differing = Object.entries(values).filter(
    ([name, value]) => JSON.stringify(model.get(name)) !== JSON.stringify(value),
  );
  if (differing.length === 0) return;
  for (const [name, value] of differing) model.set(name, value);
  model.save_changes();
}

/** The bytes of a value that Python sent as bytes. */
export function bytesOf(value: unknown): Uint8Array {
  const { buffer, byteOffset, byteLength } = value as DataView;
  return new Uint8Array(buffer, byteOffset, byteLength);
}
