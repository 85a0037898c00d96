/**
 * Tells whether the word index can take more deletions. A merge stops after a number of pages that it has
 * written, and writes nothing for deleted turns: where most turns are deleted, one step would read the whole
 * index. Deletions beyond that wait until the next merges have removed the previous ones. Turns are counted,
 * and not their words: a step can be longer where the deleted turns have many more words than the others.
 */

/** A merge reads up to four times as many pages as it writes. */
const MOST_DELETED = 3 / 4;
/** Pages that a merge may read without writing any, in about 5 ms. */
const FREE_PAGES = 256;

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
  turns: number;
  deleted: number;
}

const sumOf = (segments: readonly Segment[]): Segment => ({
  pages: segments.reduce((sum, { pages }) => sum + pages, 0),
  turns: segments.reduce((sum, { turns }) => sum + turns, 0),
  deleted: segments.reduce((sum, { deleted }) => sum + deleted, 0),
});

/**
 * The segments in the structure record. After three integers it has for each level the number of segments
 * that are being merged, the number of all segments, and these, oldest first. A merge writes to the newest
 * segment of the next level, which has no turns until its end.
 */
function segmentsIn(record: Uint8Array): Segment[] {
  const integers = integersIn(record).slice(3);
  const segments: Segment[] = [];
  let merged: Segment[] = [];
  while (integers.length > 0) {
    const [merging = 0, count = 0] = integers.splice(0, 2);
    const ofLevel: Segment[] = [];
    while (ofLevel.length < count && integers.length > 0) {
      const [, first = 0, last = 0, , , , deleted = 0, turns = 0] = integers.splice(0, 8);
      ofLevel.push({ pages: last - first + 1, turns, deleted });
    }
    if (merged.length > 0) segments.push(sumOf([...merged, ...ofLevel.splice(-1)]));
    merged = ofLevel.splice(0, merging);
    segments.push(...ofLevel);
  }
  return segments;
}

/**
 * True unless too many of the turns in the index are deleted, by its structure record, or if that has
 * another format.
 */
export function canDeleteWords(record: Uint8Array): boolean {
  if (!hasMark(record)) return true;
  const mostlyDeleted = segmentsIn(record).filter(
    ({ turns, deleted }) => deleted > turns * MOST_DELETED,
  );
  return sumOf(mostlyDeleted).pages <= FREE_PAGES;
}
