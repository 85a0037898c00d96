import { systemClock, systemIds } from '../../../services/compose/system.ts';
import { acceptRestored } from '../../../shared/restoredLogs/acceptRestored.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { memoryKeys } from '../fakes/memoryKeys.ts';

/**
 * Declares a log to stand for the one of its followers, as an operator would. Resolves with its new
 * id.
 */
export async function declareRestored(
  store: EventStore,
  replaces: readonly string[] = [],
): Promise<string> {
  const damaged = createDamagedStreams(() => undefined);
  // A declaration has no texts.
  const context = {
    store: { ...store, keys: memoryKeys().keys },
    damaged,
    clock: systemClock,
    ids: systemIds,
  };
  return (await acceptRestored(context, { replaces, reason: 'a test' })).log_id;
}
