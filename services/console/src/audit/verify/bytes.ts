import { unreadable } from './mismatch.ts';

/** Bytes over a whole buffer, as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

export const toHex = (bytes: Bytes): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Spreads no bytes: a call has fewer arguments than a text may have bytes. */
export const toBase64 = (bytes: Bytes): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));

/** The bytes of standard base64 with padding; undefined for any other text. */
export function fromBase64(text: string): Bytes | undefined {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    // atob accepts several texts for the same bytes.
    return toBase64(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** A hash of 32 bytes in base64. Throws Mismatch for any other text. */
export function fromBase64Hash(text: string): Bytes {
  const bytes = fromBase64(text);
  if (bytes?.length === 32) return bytes;
  throw unreadable('A hash is not 32 bytes in base64.');
}

export function join(...parts: readonly Uint8Array[]): Bytes {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export const isSame = (a: Bytes, b: Bytes): boolean =>
  a.length === b.length && a.every((byte, at) => byte === b[at]);

/** The SHA-256 of the parts, one after the other. */
export const digest = async (...parts: readonly Uint8Array[]): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', join(...parts)));
