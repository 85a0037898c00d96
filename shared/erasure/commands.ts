import { agentNotFoundError } from '../agents/queries.ts';
import { sessionNotFoundError } from '../sessions/queries.ts';
import { agentStream, isIdOf, sessionStream } from '../eventlog/streams.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import type { RunContext } from '../runs/context.ts';
import type { ErasedStream, ErasureGrounds } from './eraseStream.ts';
import { eraseWithReplays, createUpToDateReader } from './eraseWithReplays.ts';
import { evictErased } from './evictErased.ts';
import { isOwnStream } from '../eventlog/reading/streamOwner.ts';
import type { ErasureContext } from './retention/requireErasable.ts';

/** Dependencies of erasures by clients. The caches are those of this process. */
type EraseContext = CommandContext &
  Pick<RunContext, 'runState' | 'cachedRows'> &
  Pick<ErasureContext, 'judge'>;

const KINDS = {
  session: {
    streamOf: sessionStream,
    missing: sessionNotFoundError,
    find: ({ findSession }: EraseContext['readModels'], id: string) => findSession(id),
  },
  agent: {
    streamOf: agentStream,
    missing: agentNotFoundError,
    find: ({ findAgent }: EraseContext['readModels'], id: string) => findAgent(id),
  },
} as const;

/**
 * The stream of a session or agent that the account owns. The error is the same for an unknown id
 * and for one of another account, after the same work. Errors: `session_not_found`, `agent_not_found`,
 * `store_unavailable`.
 */
export async function requireOwnStream(
  kind: keyof typeof KINDS,
  context: EraseContext,
  { account_id }: Actor,
  id: string,
): Promise<string> {
  const { streamOf, missing, find } = KINDS[kind];
  const stream = streamOf(id);
  const findRow = () => find(context.readModels, id);
  const isOwn = isIdOf(kind, id) && (await isOwnStream(context, account_id, stream, findRow));
  if (!isOwn) throw missing();
  return stream;
}

async function eraseOwn(
  kind: keyof typeof KINDS,
  context: EraseContext,
  actor: Actor,
  { id, ...grounds }: ErasureGrounds & { id: string },
): Promise<ErasedStream> {
  const stream = await requireOwnStream(kind, context, actor, id);
  const { readModels, visibilityWaitMs } = context;
  const erasureContext = {
    ...context,
    dependentsAt: createUpToDateReader(readModels, visibilityWaitMs),
    onErased: (erased: ErasedStream) => evictErased(context, erased),
  };
  const erased = await eraseWithReplays(erasureContext, stream, grounds, actor);
  evictErased(context, erased);
  await waitUntilVisible(context, erased.position);
  return erased;
}

/**
 * Permanently erases the texts of a session of the actor's account, and ends a run that uses it. No
 * read shows any of the texts after the promise resolves. Idempotent. Errors: `session_not_found`,
 * `erasure_refused`, `stream_damaged` if the erasure can't be recorded, `store_unavailable`. After
 * `store_unavailable` the erasure may have begun; a running service then finishes it.
 */
export const eraseSession = (
  context: EraseContext,
  actor: Actor,
  sessionId: string,
  grounds: ErasureGrounds,
): Promise<ErasedStream> => eraseOwn('session', context, actor, { ...grounds, id: sessionId });

/**
 * Permanently erases the texts of an agent. Its sessions keep their texts. Errors:
 * `agent_not_found`, and otherwise those of eraseSession.
 */
export const eraseAgent = (
  context: EraseContext,
  actor: Actor,
  agentId: string,
  grounds: ErasureGrounds,
): Promise<ErasedStream> => eraseOwn('agent', context, actor, { ...grounds, id: agentId });
