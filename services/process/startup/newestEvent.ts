import { isChangedEvent } from '../../../shared/eventlog/identity/logIdentity.ts';
import { belongsIn } from '../../../shared/eventlog/eventTypes.ts';
import { readPage } from '../../../shared/eventlog/reading/readWhole.ts';
import { reportDamage, type StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { isLogUnavailable, isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Checkpoint, EventStore } from '../../../shared/ports/eventStore.ts';
import type { ProcessPart } from '../processParts.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

interface NewestEvent extends StreamSource {
  store: StreamSource['store'] & Pick<EventStore, 'eventAt' | 'head'>;
  /** The checkpoint of the read models, whose hash is known apart from the log. */
  checkpoint: () => Promise<Checkpoint | undefined>;
  logger: Logger;
}

/**
 * Examines the newest event of the log, and the one up to which the read models follow it, so that
 * health names a stream whose end was changed while no process ran. The start continues.
 */
export function newestEventPart({ checkpoint, logger, ...source }: NewestEvent): ProcessPart {
  const { store } = source;
  let waitsFor: string | undefined;

  async function examine(): Promise<void> {
    const latest = await checkpoint();
    for (const position of new Set([latest?.position, await store.head()])) {
      const event = position === undefined ? undefined : await store.eventAt(position);
      if (!event) continue;
      const { stream, revision } = event;
      // Other applications may write to the same log.
      if (position !== latest?.position && !belongsIn(stream, event.type)) continue;
      if (latest && isChangedEvent(event, latest)) {
        const reason = `the event at revision ${revision} is not the one that was recorded: the read models know another hash of it`;
        await reportDamage(source, stream, { reason, revision });
        continue;
      }
      const page = { direction: 'forwards', from: revision, limit: 1 } as const;
      await readPage(source, stream, page).catch((error: unknown) => {
        // Reading it has reported the damage.
        if (!isTurnlogError(error) || isLogUnavailable(error)) throw error;
      });
    }
  }

  /** Names what the start waits for: a part of the transparency log may be lost. */
  async function attempt(): Promise<void> {
    try {
      await examine();
      waitsFor = undefined;
    } catch (error) {
      waitsFor = isLogUnavailable(error) ? error.message : undefined;
      throw error;
    }
  }

  return {
    prepare: (signal) => retryUntilStoreAvailable(attempt, logger, signal),
    trouble: () => waitsFor,
  };
}
