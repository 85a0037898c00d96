import { logChangedError } from '../lib/errors/turnlogError.ts';
import type { ProtectedStore } from './encryption/protectedStore.ts';

/**
 * The store, as long as its log is the one that is followed: what is appended to another one would
 * never be shown. `logChanged` says why it isn't, in one sentence.
 * Errors of append, beside the store's: `log_changed`.
 */
export const guardAppends = (
  store: ProtectedStore,
  logChanged: () => string | undefined,
): ProtectedStore => ({
  ...store,
  async append(stream, expected, events) {
    const reason = logChanged();
    if (reason !== undefined)
      throw logChangedError(
        `The event log is not the one that this service follows, and nothing is written to it. ${reason}`,
      );
    return store.append(stream, expected, events);
  },
});
