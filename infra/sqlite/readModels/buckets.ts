/**
 * The rowids of the word index. A rowid consists of a bucket and a slot in it. A bucket is the
 * millisecond in which a session id was made. Buckets have the order of the sessions' ids, so a search
 * reads the index in the order of the list and stops when the page is full.
 */

/** Two million turns per bucket. Further turns are not indexed. */
const SLOT_BITS = 21;

/** SQL for the first rowid of a bucket, which may exceed the integers of JavaScript. */
export const firstRowid = (bucket: string): string => `(${bucket} << ${SLOT_BITS})`;

/** SQL for the last rowid of a bucket. */
export const lastRowid = (bucket: string): string =>
  `(${bucket} << ${SLOT_BITS} | ${2 ** SLOT_BITS - 1})`;

/** SQL for the bucket of a rowid. */
export const bucketAt = (rowid: string): string => `(${rowid} >> ${SLOT_BITS})`;

/** SQL for the slot of a rowid in its bucket. */
export const slotAt = (rowid: string): string => `(${rowid} & ${2 ** SLOT_BITS - 1})`;

/** Milliseconds since 1970 in the remaining 42 of 63 bits: until the year 2109. */
const LAST_BUCKET = 2 ** 42 - 1;

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** The 48 bits of a UUIDv7's milliseconds, after two zero bits, in base 32. */
const CHARACTERS = 10;

/** The number of letters of the alphabet before the character. */
const digitOf = (character: string): number =>
  Array.from(ALPHABET).filter((letter) => letter < character).length;

const DIGITS = Array.from({ length: 128 }, (_, code) => digitOf(String.fromCharCode(code)));

/** The bucket of a session. A greater id never has a lower bucket. */
export function bucketOf(sessionId: string): number {
  const from = sessionId.indexOf('_') + 1;
  let bucket = 0;
  for (let at = from; at < from + CHARACTERS; at += 1)
    bucket = bucket * 32 + Math.min(DIGITS[sessionId.charCodeAt(at)] ?? 0, 31);
  return Math.min(bucket, LAST_BUCKET);
}

/** The sizes of blocks: 2 ** bits buckets each, from one second to 35 years. */
const BLOCK_BITS = Array.from({ length: 16 }, (_, nth) => 10 + 2 * nth);
/** The number of blocks that a rowid is in, each a word of the index. */
export const BLOCKS_OF_TURN = BLOCK_BITS.length;
/** The most blocks that a search names, because each is looked up. */
const BLOCKS = 4;

/** The digit distinguishes it from the token of a word. */
const blockName = (bits: number): string => `b${bits}x`;

/** SQL for the blocks that contain a rowid, as words of the index. */
export const blocksAt = (rowid: string): string =>
  BLOCK_BITS.map((bits) => `'${blockName(bits)}' || (${rowid} >> ${SLOT_BITS + bits})`).join(
    " || ' ' || ",
  );

const blockAt = (bucket: number, bits: number): number => Math.floor(bucket / 2 ** bits);

/** An FTS5 expression for the smallest blocks, at most BLOCKS, that contain all of these buckets. */
export function matchBlocks(first: number, last: number): string {
  const bits = BLOCK_BITS.find(
    (candidate) => blockAt(last, candidate) - blockAt(first, candidate) < BLOCKS,
  )!;
  const from = blockAt(first, bits);
  const blocks = Array.from({ length: blockAt(last, bits) - from + 1 }, (_, n) => from + n);
  return `(${blocks.map((block) => `${blockName(bits)}${block}`).join(' OR ')})`;
}
