/**
 * What stands in the log of a client's `Idempotency-Key` and of what came with it: nothing that says
 * either, or that a guess at a body could be compared with by who does not have the key.
 */
import { createHmac } from 'node:crypto';
import { canonicalJson } from '../eventlog/canonicalJson.ts';

/** A request with an `Idempotency-Key`, as the API has it. */
export interface KeyedRequest {
  key: string;
  account_id: string;
  method: string;
  /** As served, so that one agent's requests are not another's. */
  path: string;
}

const hmacOf = (key: string, purpose: 'request' | 'content', value: unknown): string =>
  createHmac('sha256', key).update(`${purpose}\n`).update(canonicalJson(value)).digest('hex');

/** The id of the request's stream: of one account, one operation on one thing, and one key. */
export const requestIdOf = ({ key, account_id, method, path }: KeyedRequest): string =>
  hmacOf(key, 'request', [account_id, method, path]);

/** What tells whether another content came with the same key. */
export const contentHmac = ({ key }: KeyedRequest, content: object): string =>
  hmacOf(key, 'content', content);
