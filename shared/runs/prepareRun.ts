import { parseAccountId } from '../eventlog/reading/streamOwner.ts';
import { findOwnAgent } from '../agents/queries.ts';
import { requireSupported } from '../agents/catalogue.ts';
import type { Actor } from '../commandHandling/context.ts';
import { findFirstEvent } from '../eventlog/reading/readWhole.ts';
import { isIdOf, sessionStream } from '../eventlog/streams.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { sessionOfReplayError } from '../replays/errors.ts';
import type { Reserved } from '../requests/events.ts';
import type { RunContext, RunSlice } from './context.ts';
import {
  isVisible,
  sessionOfAgentNotFoundError,
  type RequestedSession,
} from './queueing/loadSessionForRun.ts';
import type { RunsInFlight } from './queueing/runsInFlight.ts';
import type { PreparedRun, RunInput } from './runRequest.ts';

type PrepareContext = RunSlice<
  'cachedRows' | 'catalogue' | 'damaged' | 'ids' | 'readModels' | 'reserveRead' | 'store',
  'sessionCache'
>;

/** The owner of a session, and the instruction that replaces the agent's. */
type SessionOwnership = Readonly<{
  account_id: string | undefined;
  agent_id: string | undefined;
  replay_id: string | undefined;
  instruction: string | undefined;
}>;

/**
 * Reads the ownership from this process's cache or from the log; undefined if neither contains the
 * session as one of the account. Nothing of another account's session is decrypted.
 */
async function findSessionOwnership(
  { store, damaged, reserveRead, runState }: PrepareContext,
  accountId: string,
  sessionId: string,
): Promise<SessionOwnership | undefined> {
  const cached = runState.sessionCache.peek(sessionId);
  if (cached?.account_id === accountId && cached.state.status !== 'none')
    return {
      account_id: cached.account_id,
      replay_id: undefined,
      instruction: undefined,
      ...cached.state,
    };
  const readStream: typeof store.readStream = async (...args) =>
    (await store.readStream(...args)).filter((event) => {
      const owner = parseAccountId(event);
      return owner === undefined || owner === accountId;
    });
  const source = { store: { ...store, readStream }, damaged, reserveRead };
  const first = await findFirstEvent(source, sessionStream(sessionId)).catch((error: unknown) => {
    if (isTurnlogError(error, 'stream_damaged') || isTurnlogError(error, 'release_too_old'))
      return undefined;
    throw error;
  });
  if (first?.event.type !== 'session.started.v1') return undefined;
  const { recorded, event } = first;
  const { agent_id, instruction, replay } = event.data;
  const { account_id } = recorded.metadata;
  return { account_id, agent_id, instruction, replay_id: replay?.replay_id };
}

/**
 * Checks that the session belongs to the account and the agent before the run waits for it. Other
 * accounts therefore neither wait for its runs nor learn whether it is busy. Returns the session's
 * instruction.
 */
async function requireOwnSession(
  context: PrepareContext,
  request: RequestedSession,
): Promise<string | undefined> {
  if (request.new_session) return undefined;
  const { actor, agent, session_id } = request;
  const owner = await findSessionOwnership(context, actor.account_id, session_id);
  const isOwn = owner
    ? owner.account_id === actor.account_id && owner.agent_id === agent.agent_id
    : await isVisible(context, request);
  if (!isOwn) throw sessionOfAgentNotFoundError();
  if (owner && owner.replay_id !== request.replay?.replay_id) throw sessionOfReplayError();
  return owner?.instruction;
}

/**
 * Prepares everything that a run needs before it waits: its agent and its session. Throws
 * `agent_not_found`, `agent_erased`, `model_not_supported`, `tool_not_supported`,
 * `session_not_found`, `session_of_replay` or `store_unavailable`.
 */
export async function prepareRun(
  context: PrepareContext,
  actor: Actor,
  input: RunInput,
): Promise<PreparedRun> {
  const { cachedRows, catalogue, ids } = context;
  const preparedAt = performance.now();
  const { session_id = input.claim?.reserved.id ?? ids.typeId('session'), replay } = input;
  const agent = replay?.agent ?? (await findOwnAgent(cachedRows, actor.account_id, input.agent_id));
  // A replay checks a tool only when the tool is called.
  requireSupported(catalogue, agent.model, (!replay && agent.tool) || undefined);
  if (!isIdOf('session', session_id)) throw sessionOfAgentNotFoundError();
  const prepared = { agent, session_id, preparedAt, new_session: input.session_id === undefined };
  const instruction = await requireOwnSession(context, { ...input, ...prepared, actor });
  // The agent of a replay already has the right instruction.
  return replay || instruction === undefined
    ? prepared
    : { ...prepared, agent: { ...agent, instruction } };
}

/** How long the notification of an erasure may take to reach another replica. */
const MAX_AGE_MS = 1_000;

/** Whether a run may use what was prepared: the agent may have changed or been erased since. */
export const isPreparationCurrent = (
  { preparedAt }: Pick<PreparedRun, 'preparedAt'>,
  runsInFlight: Pick<RunsInFlight, 'interruptedSince'>,
  now: number,
): boolean => now - preparedAt < MAX_AGE_MS && !runsInFlight.interruptedSince(preparedAt);

/**
 * The data that the first attempt of a run reserves for later ones: the id of its new session, or
 * the revision after which its turn is found in an existing one. Throws `store_unavailable`.
 */
export async function reserveRun(
  { store }: Pick<RunContext, 'store'>,
  { session_id, new_session }: PreparedRun,
): Promise<Reserved> {
  if (new_session) return { id: session_id };
  const [last] = await store.readStream(sessionStream(session_id), {
    direction: 'backwards',
    limit: 1,
  });
  return last ? { revision: last.revision } : {};
}
