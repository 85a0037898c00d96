import { resolvesWithin } from './resolvesWithin.ts';

/**
 * Yields the items of a source, and `idle` whenever none has arrived for `idleMs`. Ends with the
 * source, and closes the source when the consumer stops.
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
    // An item may still be pending when the consumer stops; neither it nor its failure matters
    // then.
    next.catch(() => undefined);
    void iterator.return?.()?.catch(() => undefined);
  }
}
