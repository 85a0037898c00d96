import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import type { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { NO_LEAF } from './leafComparison.ts';

/** Notes that an event has no leaf where the tree has another one, and returns `stream_damaged`. */
export const reportMissingLeaf = (
  source: StreamSource,
  { stream, revision }: Pick<StoredEvent, 'stream' | 'revision'>,
): Promise<TurnlogError> =>
  reportDamage(source, stream, {
    reason: `the event at revision ${revision} ${NO_LEAF}`,
    revision,
  });
