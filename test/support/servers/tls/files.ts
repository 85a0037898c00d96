import { fileURLToPath } from 'node:url';

/** Self-signed, for 127.0.0.1, made for these tests; it protects nothing. */
export const CERTIFICATE_FILE = fileURLToPath(new URL('certificate.pem', import.meta.url));
export const KEY_FILE = fileURLToPath(new URL('key.pem', import.meta.url));
/** One that signs nothing here: for who trusts the wrong authority. */
export const OTHER_CERTIFICATE_FILE = fileURLToPath(new URL('other.pem', import.meta.url));
