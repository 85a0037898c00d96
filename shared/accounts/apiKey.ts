import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256 } from '../eventlog/hashChain.ts';

const MINTED = /^tl_(key_[0-7][0-9a-hjkmnp-tv-z]{25})_[0-9a-f]{64}$/;

/** A new API key `tl_<key id>_<secret>`; the secret is 32 random bytes in hex. */
export const mintApiKey = (keyId: string): string =>
  `tl_${keyId}_${randomBytes(32).toString('hex')}`;

/**
 * The key id that a presented key contains. Undefined for a key that an operator chose
 * (BOOTSTRAP_API_KEY): its id is random, so that the id reveals nothing about the key.
 */
export const claimedKeyId = (apiKey: string): string | undefined => MINTED.exec(apiKey)?.[1];

/**
 * The stored hash of a key. One round of SHA-256 is sufficient, because the secret has 256 random
 * bits.
 */
export const hashApiKey = (apiKey: string): string => sha256(apiKey);

/** Compares two hashes in constant time. */
export const hashesAreEqual = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/**
 * Minimum length of a chosen key in characters, and minimum strength in bits according to
 * `estimateBits`.
 */
export const STRONG_KEY = { length: 32, bits: 64 };

/**
 * A conservative estimate of a chosen key's strength in bits: the character entropy, times the
 * number of positions with a new trigram and a step (the difference between two character codes)
 * that differs from both steps before it. Keys such as `aaaa`, `abcabc`, `abcdef` and `a1b2c3`
 * therefore count for almost nothing, and 128 random bits count for 70 to 120, depending on the
 * encoding.
 */
function estimateBits(key: string): number {
  const counts = new Map<string, number>();
  for (const character of key) counts.set(character, (counts.get(character) ?? 0) + 1);
  let entropy = 0;
  for (const count of counts.values())
    entropy -= (count / key.length) * Math.log2(count / key.length);
  const distinctParts = new Set<string>();
  let steps: number[] = [];
  for (let at = 1; at < key.length; at += 1) {
    const step = key.charCodeAt(at) - key.charCodeAt(at - 1);
    if (!steps.includes(step)) distinctParts.add(key.slice(Math.max(0, at - 2), at + 1));
    steps = [step, ...steps.slice(0, 1)];
  }
  return entropy * distinctParts.size;
}

/**
 * Returns true for a chosen key that is strong enough to be issued. The stored hash must not help
 * to guess the key.
 */
export const isStrongKey = (key: string): boolean =>
  key.length >= STRONG_KEY.length && estimateBits(key) >= STRONG_KEY.bits;
