import { openNamedStore } from '../../../services/compose/eventStore.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { verifyChains } from '../../../shared/eventlog/reading/verifyChains.ts';

/** The first event of a log that does not fit its hash chain; undefined where all do. */
export async function misfitIn(storeName: string): ReturnType<typeof verifyChains> {
  const store = await openNamedStore(storeName, createLogger('error'));
  try {
    return await verifyChains({
      store,
      after: undefined,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
  } finally {
    await store.close();
  }
}
