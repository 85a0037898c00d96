import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256 } from './eventlog/hashChain.ts';

const MINTED = /^tl_(key_[0-7][0-9a-hjkmnp-tv-z]{25})_[0-9a-f]{64}$/;

/** A new API key `tl_<key id>_<secret>`; the secret is 32 random bytes in hex. */
export const mintApiKey = (keyId: string): string =>
  `tl_${keyId}_${randomBytes(32).toString('hex')}`;

/**
 * The key id that a presented key claims. A key that an operator chose (BOOTSTRAP_API_KEY) carries
 * none, so its id is derived from it; the result has the shape of a TypeID.
 */
export const claimedKeyId = (apiKey: string): string =>
  MINTED.exec(apiKey)?.[1] ?? `key_0${sha256(apiKey).slice(0, 25)}`;

/** What is stored of a key. One round of SHA-256 will do: the secret is 256 random bits. */
export const hashApiKey = (apiKey: string): string => sha256(apiKey);

/** Compares two hashes in constant time. */
export const sameHash = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
