import { TurnlogError } from '../../shared/errors.ts';

/** Gives back all but that many bytes; 0 at the end. */
export type Keep = (bytes: number) => void;

/** Takes bytes for an account. Errors: `rate_limited` (the account), `overloaded` (the process). */
export type ByteBudget = (accountId: string, bytes: number) => Keep;

const SOON = { retriable: true, retryAfterSeconds: 1 };

/** Bytes that requests in progress may hold: `total` together, `perAccount` those of one account. */
export function createByteBudget(total: number, perAccount: number): ByteBudget {
  const accounts = new Map<string, number>();
  let taken = 0;

  function change(accountId: string, bytes: number): void {
    taken += bytes;
    const ofAccount = (accounts.get(accountId) ?? 0) + bytes;
    if (ofAccount === 0) accounts.delete(accountId);
    else accounts.set(accountId, ofAccount);
  }

  return (accountId, bytes) => {
    if ((accounts.get(accountId) ?? 0) + bytes > perAccount)
      throw new TurnlogError(
        'rate_limited',
        'The account’s requests in progress hold as many bytes as one account may have.',
        SOON,
      );
    if (taken + bytes > total)
      throw new TurnlogError(
        'overloaded',
        'The requests in progress hold as many bytes as the service has room for.',
        SOON,
      );
    let held = bytes;
    change(accountId, held);
    return (kept) => {
      change(accountId, kept - held);
      held = kept;
    };
  };
}
