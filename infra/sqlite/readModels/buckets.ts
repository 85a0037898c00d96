/**
 * Where the turns of a session stand in the index of words. A rowid is a bucket and a place in it, and
 * buckets have the order of the sessions' ids, so that a search goes through the index in the order of
 * the list, and stops where a page is full. A bucket is the millisecond in which an id was made.
 */

/** Of the place: two million turns a bucket. Those beyond are not found. */
const PLACE_BITS = 21;

/** SQL that gives the first rowid of a bucket. JavaScript's numbers do not hold it. */
export const firstPlace = (bucket: string): string => `(${bucket} << ${PLACE_BITS})`;

/** SQL that gives the last one. */
export const lastPlace = (bucket: string): string =>
  `(${bucket} << ${PLACE_BITS} | ${2 ** PLACE_BITS - 1})`;

/** SQL that gives the bucket of a rowid. */
export const bucketAt = (rowid: string): string => `(${rowid} >> ${PLACE_BITS})`;

/** As many milliseconds since 1970 as are left of 63 bits: until the year 2109. */
const LAST_BUCKET = 2 ** 42 - 1;

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** Of the 48 bits of a UUIDv7's milliseconds, in base 32 after two zero bits. */
const CHARACTERS = 10;

/** How many letters of the alphabet come before the character. */
const digitOf = (character: string): number =>
  Array.from(ALPHABET).filter((letter) => letter < character).length;

const DIGITS = Array.from({ length: 128 }, (_, code) => digitOf(String.fromCharCode(code)));

/** The bucket of a session: of two ids the greater one never has the lower bucket. */
export function bucketOf(sessionId: string): number {
  const from = sessionId.indexOf('_') + 1;
  let bucket = 0;
  for (let at = from; at < from + CHARACTERS; at += 1)
    bucket = bucket * 32 + Math.min(DIGITS[sessionId.charCodeAt(at)] ?? 0, 31);
  return Math.min(bucket, LAST_BUCKET);
}

/** The sizes of blocks: of 2 ** bits buckets each, from a second to 35 years. */
const BLOCK_BITS = Array.from({ length: 16 }, (_, nth) => 10 + 2 * nth);
/** A search names no more of them: each has to be looked up. */
const BLOCKS = 4;

/** A digit keeps it from being the token of a word. */
const blockName = (bits: number): string => `b${bits}x`;

/** SQL that gives the blocks in which a rowid is, as words of the index. */
export const blocksAt = (rowid: string): string =>
  BLOCK_BITS.map((bits) => `'${blockName(bits)}' || (${rowid} >> ${PLACE_BITS + bits})`).join(
    " || ' ' || ",
  );

const blockAt = (bucket: number, bits: number): number => Math.floor(bucket / 2 ** bits);

/** What is in at least one of the smallest blocks that are few and hold all of these buckets. */
export function inBlocks(first: number, last: number): string {
  const bits = BLOCK_BITS.find((some) => blockAt(last, some) - blockAt(first, some) < BLOCKS)!;
  const from = blockAt(first, bits);
  const blocks = Array.from({ length: blockAt(last, bits) - from + 1 }, (_, n) => from + n);
  return `(${blocks.map((block) => `${blockName(bits)}${block}`).join(' OR ')})`;
}
