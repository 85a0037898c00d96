/**
 * Tells whether the word index can take more deletions. A merge stops after a number of pages that it has
 * written, and writes nothing for deleted words: where most words are deleted, one step would read the whole
 * index. Deletions beyond that wait until the next merges have removed the previous ones.
 */

/**
 * Pages that a merge may read without writing any, in about 5 ms. While at most half of the words are deleted,
 * a merge that writes 16 pages reads fewer than 300: a word of a single turn takes at most twice its text,
 * 18 bytes with the rowid, and one of many turns at least a byte for each.
 */
const FREE_PAGES = 256;
/** Half of what the index needs for the blocks of a turn (buckets.ts), in bytes. */
export const BYTES_OF_BLOCKS = 64;

/**
 * `live_words` has the length of the words of single origins, and of 2 ** bits of them together, because an
 * index may have a million origins.
 */
export const ORIGIN_BITS = [16, 8, 0];

/** The length of the live words before an origin. */
export const LIVE_BYTES_BEFORE = `SELECT coalesce(sum(bytes), 0) AS bytes FROM (${ORIGIN_BITS.map(
  (bits, nth) => `SELECT bytes FROM live_words WHERE bits = ${bits}
    AND part >= ($origin >> ${ORIGIN_BITS[nth - 1] ?? 63} << ${(ORIGIN_BITS[nth - 1] ?? 63) - bits}) AND part < ($origin >> ${bits})`,
).join(' UNION ALL ')})`;

/** The cookie, and the mark of tables with contentless_delete. */
const HEADER_BYTES = 8;
const MARK = [0xff, 0, 0, 1];
const hasMark = (record: Uint8Array): boolean => MARK.every((byte, at) => record[4 + at] === byte);

/** The variable-length integers in a record of FTS5. These have fewer than nine bytes. */
function integersIn(record: Uint8Array): number[] {
  const integers: number[] = [];
  let value = 0;
  for (const byte of record.subarray(HEADER_BYTES)) {
    value = value * 128 + (byte & 127);
    if (byte > 127) continue;
    integers.push(value);
    value = 0;
  }
  return integers;
}

/** A segment, or all of a merge that was begun. */
interface Segment {
  pages: number;
  /** The number of deleted turns. */
  deleted: number;
  /** The origins of its turns: FTS5 numbers what it writes at once. */
  firstOrigin: number;
  lastOrigin: number;
}

const sumOf = (segments: readonly Segment[]): Segment => ({
  pages: segments.reduce((sum, { pages }) => sum + pages, 0),
  deleted: segments.reduce((sum, { deleted }) => sum + deleted, 0),
  firstOrigin: Math.min(...segments.map(({ firstOrigin }) => firstOrigin)),
  lastOrigin: Math.max(...segments.map(({ lastOrigin }) => lastOrigin)),
});

/**
 * The segments in the structure record. After three integers it has for each level the number of segments
 * that are being merged, the number of all segments, and these, oldest first. A merge writes to the newest
 * segment of the next level.
 */
function segmentsIn(record: Uint8Array): Segment[] {
  const integers = integersIn(record).slice(3);
  const segments: Segment[] = [];
  let merged: Segment[] = [];
  while (integers.length > 0) {
    const [merging = 0, count = 0] = integers.splice(0, 2);
    const ofLevel: Segment[] = [];
    while (ofLevel.length < count && integers.length > 0) {
      const [, first = 0, last = 0, firstOrigin = 0, lastOrigin = 0, , deleted = 0] =
        integers.splice(0, 8);
      ofLevel.push({ pages: last - first + 1, deleted, firstOrigin, lastOrigin });
    }
    if (merged.length > 0) segments.push(sumOf([...merged, ...ofLevel.splice(-1)]));
    merged = ofLevel.splice(0, merging);
    segments.push(...ofLevel);
  }
  return segments;
}

/** Counts words in the tables `deleted_words` and `live_words`, which triggers fill. */
interface DeletedWords {
  /** The length of the deleted words with these origins, in bytes. */
  bytesOf: (firstOrigin: number, lastOrigin: number) => number;
  /** The length of the other words with these origins. */
  liveBytesOf: (firstOrigin: number, lastOrigin: number) => number;
  /** Starts anew: the index has no deleted words. */
  reset: () => void;
}

/**
 * True unless too much of the index is deleted, by its structure record, or if that has another format.
 */
export function canDeleteWords(
  record: Uint8Array,
  { bytesOf, liveBytesOf, reset }: DeletedWords,
): boolean {
  if (!hasMark(record)) return true;
  const withDeleted = segmentsIn(record).filter(({ deleted }) => deleted > 0);
  if (withDeleted.length === 0) reset();
  const mostlyDeleted = withDeleted.filter(
    ({ firstOrigin, lastOrigin }) =>
      bytesOf(firstOrigin, lastOrigin) > liveBytesOf(firstOrigin, lastOrigin),
  );
  return mostlyDeleted.reduce((sum, { pages }) => sum + pages, 0) <= FREE_PAGES;
}
