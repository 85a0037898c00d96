import type { ChatGrant } from '../chatTokens/chatToken.ts';
import type { DamagedStreams } from '../eventlog/reading/damagedStreams.ts';
import type { ReserveRead } from '../eventlog/reading/readMemory.ts';
import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock, Ids } from '../ports/clock.ts';
import type { Position } from '../ports/eventStore.ts';
import type { AgentCreation, ReadModels, TurnWrite } from '../ports/readModels.ts';

/** The API key that acts, and its request. */
export interface Actor {
  account_id: string;
  key_id: string;
  /** Present for a chat token that the key has issued. */
  chat?: ChatGrant;
  request_id: string;
  /** The id that the client knows the request by, for the log. Events never hold it. */
  client_request_id?: string;
}

/** The request's id in lines of the log. */
export const loggedRequestId = ({
  request_id,
  client_request_id,
}: Pick<Actor, 'request_id' | 'client_request_id'>): string => client_request_id ?? request_id;

export interface CommandContext {
  store: ProtectedStore;
  /** Streams that this process found damaged. */
  damaged: DamagedStreams;
  /** Reserves the memory of what the request reads; absent where the service itself acts. */
  reserveRead?: ReserveRead | undefined;
  readModels: ReadModels;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** The longest wait of a write for the read models. */
  visibilityWaitMs: number;
  /** Called when a write is answered before the read models show it. */
  onVisibilityTimeout?: () => void;
  /** Waits for the account's turn after a wait that ends for many requests at once. */
  waitToResume?: () => Promise<void> | undefined;
  /** Called when the answer is that of an earlier attempt of the request. */
  onIdempotentReplay?: () => void;
}

export type VisibilityContext = Pick<
  CommandContext,
  'readModels' | 'logger' | 'visibilityWaitMs' | 'onVisibilityTimeout' | 'waitToResume'
>;

/** Waits for the account's turn: requests that waited for the same would continue all at once. */
export async function resumeFairly({
  waitToResume,
}: Pick<CommandContext, 'waitToResume'>): Promise<void> {
  const turn = waitToResume?.();
  if (turn) await turn;
}

/**
 * Waits until every later read sees the write. If the read models are late, the wait ends without an
 * error, since the write is durable: it is logged, and `onVisibilityTimeout` is called.
 */
export async function waitUntilVisible(
  context: VisibilityContext,
  position: Position,
): Promise<void> {
  const { readModels, logger, visibilityWaitMs, onVisibilityTimeout } = context;
  let isVisible: boolean;
  try {
    isVisible = await readModels.untilShown(position, visibilityWaitMs);
    if (!isVisible)
      logger.warn(
        { position, visibilityWaitMs },
        'a write was answered before the read models showed it',
      );
  } catch (error) {
    isVisible = false;
    logger.warn(
      errorSummary(error),
      'the read models could not be asked whether they show a write',
    );
  }
  if (!isVisible) onVisibilityTimeout?.();
  await resumeFairly(context);
}

/**
 * The same for the end of a turn, or a new agent. In a single process, queries wait for the projection
 * instead, so that a run or the creation does not.
 */
export async function waitUntilTurnVisible(
  context: VisibilityContext,
  write: TurnWrite,
): Promise<void> {
  if (context.readModels.showLater?.(write) !== true)
    await waitUntilVisible(context, write.position);
}

export async function waitUntilAgentVisible(
  context: VisibilityContext,
  creation: AgentCreation,
): Promise<void> {
  if (context.readModels.showLater?.(creation) !== true)
    await waitUntilVisible(context, creation.position);
}
