/** Kinds of reads that `AUDIT_READS` may name. */
export const FOLDED_READS = ['feed', 'requests', 'transcripts'] as const;

export type FoldedRead = (typeof FOLDED_READS)[number];

/** Parses the option: kinds separated by commas, or `none`. */
export const parseFoldedReads = (text: string): ReadonlySet<FoldedRead> =>
  new Set(FOLDED_READS.filter((kind) => text.split(',').includes(kind)));
