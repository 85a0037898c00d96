import type { StoreLogger } from './logger.ts';

/** So many refusals in a row, without a call that was allowed, concern more than one stream. */
const REFUSALS = 3;
/**
 * Nobody may call while the store is said to be of no use: what was refused longer ago says nothing
 * of now, in milliseconds.
 */
const FRESH_MS = 10_000;

/** What a call needs the right for, with the right: `append to session-1 ($w)`. */
export interface Right {
  kind: 'append' | 'read';
  name: string;
}

interface Refused {
  refusals: number;
  sentence: string;
  at: number;
}

/**
 * Rights that the user of the connection string turned out to lack. One stream that others keep for
 * themselves is logged; a user who may do nothing is a trouble of the whole store.
 */
export function createRights(logger: StoreLogger | undefined) {
  const refused = new Map<Right['kind'], Refused>();

  return {
    denied({ kind, name }: Right, cause: unknown): Error {
      const sentence = `The event store does not let this user ${name}.`;
      const before = refused.get(kind);
      if (sentence !== before?.sentence) logger?.warn({}, sentence);
      refused.set(kind, { refusals: (before?.refusals ?? 0) + 1, sentence, at: performance.now() });
      return new Error(sentence, { cause });
    },
    allowed: ({ kind }: Right): void => void refused.delete(kind),
    trouble: (): string | undefined =>
      [...refused.values()].find(
        ({ refusals, at }) => refusals >= REFUSALS && performance.now() - at < FRESH_MS,
      )?.sentence,
  };
}
