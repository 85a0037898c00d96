import { resolvesWithin } from './resolvesWithin.ts';

/**
 * The items of a source, and `idle` whenever none has come for so long. Ends with the source, and
 * ends the source with itself.
 */
export async function* withIdleTicks<Item>(
  source: AsyncIterable<Item>,
  idleMs: number,
): AsyncGenerator<Item | 'idle'> {
  const iterator = source[Symbol.asyncIterator]();
  let next = iterator.next();
  try {
    for (;;) {
      if (!(await resolvesWithin(next, idleMs, { ref: false }))) {
        yield 'idle';
        continue;
      }
      const result = await next;
      if (result.done) return;
      yield result.value;
      next = iterator.next();
    }
  } finally {
    // An item may still be on its way when the consumer has had enough; nobody waits for it or for
    // its failure any more.
    next.catch(() => undefined);
    void iterator.return?.()?.catch(() => undefined);
  }
}
