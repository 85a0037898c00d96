import { createHash } from 'node:crypto';

/**
 * What a label of an account's session is found by: an index of tokens holds no text, and each takes
 * as much room as any other.
 */
export const labelToken = (account_id: string, name: string, value: string): string =>
  createHash('sha256')
    .update(JSON.stringify([account_id, name, value]))
    .digest('base64url');
