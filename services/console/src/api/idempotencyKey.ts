/** A new idempotency key. Works in pages without TLS, too, where `crypto.randomUUID` is missing. */
export const newIdempotencyKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
