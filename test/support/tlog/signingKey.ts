import { fileURLToPath } from 'node:url';

/** A key that signs the transparency logs of tests. */
export const SIGNING_KEY_FILE = fileURLToPath(
  new URL('../../fixtures/log-signing-key.pem', import.meta.url),
);
