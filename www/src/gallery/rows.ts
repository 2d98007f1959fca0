/** Embeddings that are added one after another, in one buffer. */
export class Rows {
  private values = new Float32Array(0);
  private used = 0;

  /** `most`: the number of rows that may come. */
  constructor(private readonly most: number) {}

  push(row: Float32Array): void {
    // The browser gives memory to its pages only as they are written, so the whole is no more than what is used.
    if (this.used === 0) this.values = new Float32Array(this.most * row.length);
    this.values.set(row, this.used);
    this.used += row.length;
  }

  /** All of them, row by row. */
  all(): Float32Array {
    return this.used === this.values.length ? this.values : this.values.slice(0, this.used);
  }
}
