import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../shared/publicEvents/publisher.ts';
import type { Channel } from '../../../shared/publicEvents/schema.ts';
import type { IdentifiableLog } from '../../../shared/eventlog/identity/logIdentity.ts';
import { percentOf } from '../../../shared/projections/progress.ts';
import { withGapCheck } from '../../../shared/eventlog/following/gapCheck.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { wasRestored, withRelayErrors } from './logErrors.ts';
import { toPublicBatch } from '../../../shared/publicEvents/toPublicEvents.ts';

const BATCH_SIZE = 1000;
/** Consecutive failures, without a batch published between them. */
const MAX_FAILURES = 5;
const PAUSE_MS = 500;

export interface RepublishProgress {
  /** Messages published by this call. */
  published: number;
  /** 0 to 100, of the log as it was when the replay began. */
  percent: number;
  position: Position | undefined;
}

export interface RepublishOptions {
  log: IdentifiableLog & Pick<EventLog, 'subscribe'>;
  /** Publishes to topics that nothing else publishes to. */
  publisher: Publisher;
  /**
   * Begins after this position, or at the first event; an interrupted replay resumes where it stopped.
   */
  after: Position | undefined;
  /** Both when absent. */
  only: Channel | undefined;
  /** Stops between two transactions. */
  signal: AbortSignal;
  onProgress: (progress: RepublishProgress) => void;
}

interface RepublishState {
  /** The topic was empty when the replay began. */
  wasEmpty: boolean;
  published: number;
  failures: number;
}

/** Runs one publication until the end of the log, the signal, or a failure. Resolves with true at the end. */
async function publishUntilEnd(
  { log, publisher, after, only, signal, onProgress }: RepublishOptions,
  state: RepublishState,
): Promise<boolean> {
  await using resources = new AsyncDisposableStack();
  const publication = resources.adopt(await publisher.takeOver(), (open) => open.close());
  if (!state.wasEmpty && !publication.checkpoint)
    throw new TurnlogError(
      'configuration_invalid',
      'The topic already holds messages; name one that does not exist.',
    );
  const start = publication.checkpoint;
  if (await wasRestored(log, start))
    throw new TurnlogError(
      'configuration_invalid',
      'The log was restored since this replay began; replay it into a topic that does not exist.',
    );
  const end = await log.head();
  let position = start?.position;
  let isComplete = false;
  await followLog({
    log: withRelayErrors(log),
    after: start ?? after,
    batchSize: BATCH_SIZE,
    signal,
    async handleBatch({ checkpoint, ...batch }) {
      if (checkpoint && checkpoint.position !== position) {
        const events = (await toPublicBatch(batch.events)).filter(
          ({ channel }) => only === undefined || channel === only,
        );
        await publication.publish(events, checkpoint);
        position = checkpoint.position;
        state.published += events.length;
        state.failures = 0;
        onProgress({ published: state.published, position, percent: percentOf(position, end) });
      }
      isComplete = batch.caughtUp || (end !== undefined && (batch.position ?? '') >= end);
      return isComplete ? 'stop' : undefined;
    },
  });
  return isComplete;
}

/**
 * Publishes the current log again, exactly once, as the relay does. Resolves with true at the end of
 * the log, and with false when the signal aborted first; the next call with the same publisher resumes
 * there. Transient failures are retried a few times. Throws `configuration_invalid` when the topic
 * holds other messages, and `publisher_fenced` when another replay uses the same topic.
 */
export async function republishLog(republishing: RepublishOptions): Promise<boolean> {
  const options = { ...republishing, log: withGapCheck(republishing.log) };
  const state: RepublishState = {
    wasEmpty: await options.publisher.isEmpty(),
    published: 0,
    failures: 0,
  };
  for (;;) {
    try {
      return await publishUntilEnd(options, state);
    } catch (error) {
      state.failures += 1;
      if (
        !isTurnlogError(error) ||
        !error.retriable ||
        state.failures > MAX_FAILURES ||
        options.signal.aborted
      )
        throw error;
      await sleepUntilAborted(PAUSE_MS * state.failures, { signal: options.signal });
    }
  }
}
