import type { StoreLogger } from './logger.ts';

/** So many refusals without a call that was allowed in between are no matter of a single stream any more. */
const REFUSALS = 3;

/**
 * Rights that the user of the connection string turned out to lack. One stream that others keep for themselves is logged; a
 * user who may do nothing is a trouble of the whole store.
 */
export function createRights(logger: StoreLogger | undefined) {
  let refusals = 0;
  let last: string | undefined;

  return {
    denied(right: string, cause: unknown): Error {
      const sentence = `The event store does not let this user ${right}.`;
      if (sentence !== last) logger?.warn({}, sentence);
      last = sentence;
      refusals += 1;
      return new Error(sentence, { cause });
    },
    allowed(): void {
      refusals = 0;
    },
    trouble: (): string | undefined => (refusals >= REFUSALS ? last : undefined),
  };
}
