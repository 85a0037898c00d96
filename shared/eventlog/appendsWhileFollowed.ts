import { logChangedError } from '../lib/errors/turnlogError.ts';
import type { ProtectedStore } from './encryption/protectedStore.ts';

/**
 * Guards a store against appends while its log is not the one that this service follows: read
 * models would never show them. `logChanged` returns the reason, as one sentence. Appends then fail
 * with `log_changed`.
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
