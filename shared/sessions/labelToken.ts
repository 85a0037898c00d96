import { createHash } from 'node:crypto';

/** The index token of a label. Tokens contain no text and all have the same length. */
export const labelToken = (account_id: string, name: string, value: string): string =>
  createHash('sha256')
    .update(JSON.stringify([account_id, name, value]))
    .digest('base64url');
