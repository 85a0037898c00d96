import type { DamagedStreams } from '../eventlog/reading/damagedStreams.ts';
import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock, Ids } from '../ports/clock.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

/** Who acts, and in which request. */
export interface Actor {
  account_id: string;
  key_id: string;
  request_id: string;
}

/** What every command works with. */
export interface CommandContext {
  store: ProtectedStore;
  /** Streams that this process found not to be whole. */
  damaged: DamagedStreams;
  readModels: ReadModels;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** How long a write waits for the read models to show it. */
  visibilityWaitMs: number;
  /** Called where the answer did not wait until they show it. */
  onVisibilityTimeout?: () => void;
  /** Called where the answer is that of an earlier try of the request. */
  onIdempotentReplay?: () => void;
}

/**
 * Holds an answer back until every later read sees the write. Where the read models are late the
 * write is answered all the same, since it is durable; the log says so, and `onLate` is told.
 */
export async function waitUntilVisible(
  { readModels, logger, visibilityWaitMs, onVisibilityTimeout }: CommandContext,
  position: Position,
): Promise<void> {
  let shown: boolean;
  try {
    shown = await readModels.untilShown(position, visibilityWaitMs);
    if (!shown)
      logger.warn(
        { position, visibilityWaitMs },
        'a write was answered before the read models showed it',
      );
  } catch (error) {
    shown = false;
    logger.warn(
      errorSummary(error),
      'the read models could not be asked whether they show a write',
    );
  }
  if (!shown) onVisibilityTimeout?.();
}

/**
 * The same for the end of a turn: in the one process that answers queries these wait for it instead,
 * so that a run pays nothing for the projection.
 */
export async function waitUntilTurnVisible(
  context: CommandContext,
  position: Position,
): Promise<void> {
  if (context.readModels.showLater?.(position) !== true) await waitUntilVisible(context, position);
}
