import { setTimeout as sleep } from 'node:timers/promises';

/** The items of a source, and `idle` whenever none has come for so long. Ends with the source, and ends the source with itself. */
export async function* orIdle<Item>(
  source: AsyncIterable<Item>,
  idleMs: number,
): AsyncGenerator<Item | 'idle'> {
  const iterator = source[Symbol.asyncIterator]();
  let next = iterator.next();
  try {
    for (;;) {
      const waiting = new AbortController();
      const idle = sleep(idleMs, 'idle' as const, { signal: waiting.signal, ref: false }).catch(
        () => 'idle' as const,
      );
      const result = await Promise.race([next, idle]).finally(() => waiting.abort());
      if (result === 'idle') {
        yield result;
        continue;
      }
      if (result.done) return;
      yield result.value;
      next = iterator.next();
    }
  } finally {
    // An item may still be on its way when the consumer has had enough; nobody waits for it or for its failure any more.
    next.catch(() => undefined);
    void iterator.return?.()?.catch(() => undefined);
  }
}
