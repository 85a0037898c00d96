import { session, type ForkStart } from './decider.ts';
import type { ForkPoint, SessionStartedData } from './events.ts';
import { newSessionRow } from './projection.ts';
import { originErasedError, sessionErasedError } from '../erasure/errors.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import { findFirstEvent, readFirstEvent, readPage } from '../eventlog/reading/readWhole.ts';
import { endsWithErasure } from '../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import { readTurn } from './turns/turn.ts';
import type { SessionRow } from '../readModels/tables.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { type Claim, createOnce } from '../requests/idempotency.ts';
import { readOrigins, requireMatchingForkPoint } from './history/origins.ts';
import { newStreamTarget } from '../commandHandling/targetStream.ts';

/** The session to fork, and the turn after which to fork it. */
interface ForkInput {
  session_id: string;
  at_turn: number;
}

function atTurnError(message: string): TurnlogError {
  return new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { at_turn: { message, path: '/at_turn' } },
  });
}

/**
 * The fork point: the end of a turn, in the session that recorded it. A fork at a shared turn is a
 * fork of the session that recorded that turn.
 */
async function readForkPoint(
  context: CommandContext,
  { account_id }: Actor,
  { session_id, at_turn }: ForkInput,
): Promise<ForkPoint> {
  const row = await readTurn(context, { account_id, session_id, turn: at_turn }).catch(
    (error: unknown) => {
      if (!isTurnlogError(error, 'turn_not_found')) throw error;
      throw atTurnError(`"at_turn" is ${at_turn}, and the session has no such turn.`);
    },
  );
  if (row.status === 'running')
    throw atTurnError(`"at_turn" is ${at_turn}, a turn that has not ended yet.`);
  const stream = sessionStream(row.session_id);
  const range = { direction: 'forwards', from: row.revision, limit: 1 } as const;
  const [event] = await readPage(context, stream, range);
  const point = {
    session_id: row.session_id,
    turn: at_turn,
    revision: row.revision,
    hash: event?.recorded.metadata.hash ?? '',
  };
  await requireMatchingForkPoint(context, stream, point, event);
  return point;
}

/** Reads the start data of a fork from the log. Errors: those of forkSession. */
export const prepareFork = (
  context: CommandContext,
  actor: Actor,
  input: ForkInput,
): Promise<ForkStart> => withReadMemory(context, () => readForkStart(context, actor, input));

async function readForkStart(
  context: CommandContext,
  actor: Actor,
  input: ForkInput,
): Promise<ForkStart> {
  const forked_from = await readForkPoint(context, actor, input);
  const first = await readFirstEvent(context, sessionStream(forked_from.session_id));
  const origins = await readOrigins(context, first);
  if (origins.length >= LIMITS.turn.origins)
    throw atTurnError(
      `"at_turn" is in a fork of ${origins.length} forks, which can't be forked again.`,
    );
  for (const { session_id } of origins)
    if (await endsWithErasure(context.store, sessionStream(session_id))) throw originErasedError();
  const { agent_id, instruction } = first.event.data as SessionStartedData;
  return { agent_id, forked_from, ...(instruction !== undefined && { instruction }) };
}

/** The row of a new fork. */
const newForkRow = (
  session_id: string,
  metadata: Parameters<typeof newSessionRow>[1],
  { forked_from: { session_id: origin, turn, revision, hash }, ...start }: ForkStart,
): SessionRow =>
  // Members are in a fixed order, so that every response has the same bytes.
  newSessionRow(session_id, metadata, {
    ...start,
    forked_from: { session_id: origin, turn, revision, hash },
  });

/** The fork that an earlier attempt of the request created, if any. */
async function findFork(
  context: CommandContext,
  session_id: string,
): Promise<SessionRow | undefined> {
  const stream = sessionStream(session_id);
  const first = await findFirstEvent(context, stream);
  if (!first) return undefined;
  if (await endsWithErasure(context.store, stream)) throw sessionErasedError();
  const { position, metadata } = first.recorded;
  await waitUntilVisible(context, position);
  const beginning = first.event.data as ForkStart;
  return newForkRow(session_id, metadata, beginning);
}

async function createFork(
  context: CommandContext,
  actor: Actor,
  session_id: string,
  beginning: ForkStart,
): Promise<SessionRow> {
  const target = newStreamTarget(sessionStream(session_id), session);
  const command = { type: 'fork_session', ...beginning } as const;
  const { position, recorded_at } = (await handle(context, actor, target, command))!;
  await waitUntilVisible(context, position);
  return newForkRow(session_id, { account_id: actor.account_id, recorded_at }, beginning);
}

/**
 * Creates a session of the actor's account that continues another one after a turn. The fork shares
 * the turns up to that one, which remain in their session. The fork is durable and visible when the
 * promise resolves. All attempts of a claimed request create one fork and get the same response.
 * Errors: `session_not_found`, `session_erased`, `origin_erased`, `invalid_request` for a turn that
 * does not exist, is open, or is in a fork of too many sessions, `stream_damaged`,
 * `release_too_old`, `key_missing`, and those of handle.
 */
export async function forkSession(
  context: CommandContext,
  actor: Actor,
  input: ForkInput,
  claim?: Claim,
): Promise<SessionRow> {
  const session_id = claim?.reserved.id ?? context.ids.typeId('session');
  return createOnce(context, claim, {
    findExisting: () => findFork(context, session_id),
    // Prepared anew: a session of the fork's origin may have been erased since the claim.
    create: async () =>
      createFork(context, actor, session_id, await prepareFork(context, actor, input)),
  });
}
