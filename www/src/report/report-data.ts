// The scores of an evaluation, as `akin.show` gives them to the page's elements.

export interface MetricInfo {
  readonly name: string;
  /** `share`: from 0 to 1, shown in percent. */
  readonly unit: string;
  readonly greater_is_better: boolean;
}

/** A metric at a level, 1 … L, or over all levels (0). */
export interface Column {
  readonly metric: number;
  readonly level: number;
}

export interface ReportData {
  readonly levels: readonly string[];
  readonly metrics: readonly MetricInfo[];
  /** [1 + L, metrics]: the means over all levels, then at each level; null where there is none. */
  readonly means: readonly (readonly (number | null)[])[];
  readonly columns: readonly Column[];
  /** [columns, N]: the score of each query; NaN where it has none. */
  readonly scores: Float32Array;
  /** [N, L]: the class of each query, as its place in `classes`; one past the end where it is unknown. */
  readonly labels: Uint32Array;
  /** The names of the classes of each level. */
  readonly classes: readonly (readonly string[])[];
  /** The row of each query among the embeddings. */
  readonly rows: Uint32Array;
  /** The names of the queries, where they have some. */
  readonly names: readonly string[] | null;
  /** How it was measured, in a sentence. */
  readonly measurement: string;
}

/** Which queries are looked at: those of a class, those of a range of scores, or both. */
export interface Filter {
  readonly level: number;
  /** The class at this level. */
  readonly of: number | null;
  readonly bin: number | null;
}

/** The number of ranges into which scores are counted. */
export const BINS = 20;

/** A class, or a range of scores, with its queries and their mean. */
export interface ClassRow {
  readonly of: number;
  readonly name: string;
  readonly queries: number;
  readonly mean: number;
}

export class ReportScores {
  readonly count: number;

  constructor(readonly data: ReportData) {
    this.count = data.rows.length;
  }

  score(column: number, query: number): number {
    return this.data.scores[column * this.count + query] ?? NaN;
  }

  metric(column: number): MetricInfo {
    return this.data.metrics[this.data.columns[column]?.metric ?? 0]!;
  }

  /** The greatest score that is possible. */
  most(column: number): number {
    return this.metric(column).unit === "share" ? 1 : this.data.levels.length;
  }

  bin(column: number, query: number): number {
    return Math.min(BINS - 1, Math.floor((this.score(column, query) / this.most(column)) * BINS));
  }

  /** The class of a query at a level, 1 … L. */
  of(query: number, level: number): number {
    return this.data.labels[query * this.data.levels.length + level - 1] ?? 0;
  }

  className(level: number, of: number): string {
    return this.data.classes[level - 1]?.[of] ?? "unknown";
  }

  name(query: number): string {
    return this.data.names?.[query] ?? `row ${this.data.rows[query] ?? query}`;
  }

  /** How many of the queries of a class are in each range of scores. */
  counts(column: number, { level, of }: Filter): number[] {
    const counts = Array.from({ length: BINS }, () => 0);
    for (const query of this.passing(column, { level, of, bin: null })) counts[this.bin(column, query)]! += 1;
    return counts;
  }

  /** The queries that have a score and pass the filter, the worst first. */
  queries(column: number, filter: Filter): number[] {
    const score = (query: number) => this.score(column, query);
    return this.passing(column, filter).sort((a, b) => this.compare(column, score(a), score(b)) || a - b);
  }

  private passing(column: number, { level, of, bin }: Filter): number[] {
    const found: number[] = [];
    for (let query = 0; query < this.count; query++) {
      if (Number.isNaN(this.score(column, query))) continue;
      if (of !== null && this.of(query, level) !== of) continue;
      if (bin !== null && this.bin(column, query) !== bin) continue;
      found.push(query);
    }
    return found;
  }

  /** The classes of a level, the worst mean first. */
  classes(column: number, level: number): ClassRow[] {
    const sums = new Map<number, { queries: number; sum: number }>();
    for (let query = 0; query < this.count; query++) {
      const score = this.score(column, query);
      const of = this.of(query, level);
      if (Number.isNaN(score) || of >= (this.data.classes[level - 1]?.length ?? 0)) continue;
      const entry = sums.get(of) ?? { queries: 0, sum: 0 };
      entry.queries += 1;
      entry.sum += score;
      sums.set(of, entry);
    }
    return [...sums]
      .map(([of, { queries, sum }]) => ({ of, name: this.className(level, of), queries, mean: sum / queries }))
      .sort((a, b) => this.compare(column, a.mean, b.mean) || a.of - b.of);
  }

  /** Puts the worse score first. */
  private compare(column: number, a: number, b: number): number {
    return this.metric(column).greater_is_better ? a - b : b - a;
  }

  /** A score as text: in percent where it is a share. */
  text(column: number, score: number | null): string {
    return scoreText(this.metric(column), score);
  }
}

/** A score as text: in percent where it is a share. */
export const scoreText = ({ unit }: MetricInfo, score: number | null): string =>
  score === null ? "–" : unit === "share" ? (100 * score).toFixed(2) : score.toFixed(3);
