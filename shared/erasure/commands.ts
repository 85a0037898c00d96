import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { agentStream, isIdOf, sessionStream } from '../eventlog/streams.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import type { RunContext } from '../runs/context.ts';
import type { ErasedStream, Grounds } from './eraseStream.ts';
import { eraseWithReplays, readReplaysAt } from './eraseWithReplays.ts';
import { evictErased } from './evictErased.ts';
import { findStreamOwner } from './ownedStreams.ts';
import type { ErasureContext } from './retention/requireErasable.ts';

/** What a client's erasure works with; memory is this process's. */
export type EraseContext = CommandContext &
  Pick<RunContext, 'runState' | 'cachedRows'> &
  Pick<ErasureContext, 'judge'>;

const KINDS = {
  session: {
    streamOf: sessionStream,
    missing: () => new TurnlogError('session_not_found', 'There is no such session.'),
  },
  agent: {
    streamOf: agentStream,
    missing: () => new TurnlogError('agent_not_found', 'There is no such agent.'),
  },
} as const;

/**
 * The stream of what is the account's own. What is not is not told from what never was.
 * Errors: `session_not_found`, `agent_not_found`, `store_unavailable`.
 */
export async function requireOwnStream(
  kind: keyof typeof KINDS,
  context: EraseContext,
  { account_id }: Actor,
  id: string,
): Promise<string> {
  const { streamOf, missing } = KINDS[kind];
  const stream = streamOf(id);
  if (!isIdOf(kind, id) || (await findStreamOwner(context, stream)) !== account_id) throw missing();
  return stream;
}

async function eraseOwn(
  kind: keyof typeof KINDS,
  context: EraseContext,
  actor: Actor,
  { id, ...grounds }: Grounds & { id: string },
): Promise<ErasedStream> {
  const stream = await requireOwnStream(kind, context, actor, id);
  const { readModels, visibilityWaitMs } = context;
  const erasing = {
    ...context,
    replaysAt: readReplaysAt(readModels, visibilityWaitMs),
    onErased: (erased: ErasedStream) => evictErased(context, erased),
  };
  const erased = await eraseWithReplays(erasing, stream, grounds, actor);
  evictErased(context, erased);
  await waitUntilVisible(context, erased.position);
  return erased;
}

/**
 * Erases the texts of a session of the actor's account, for good; a run that works on it ends. When
 * it resolves no later read shows any of them. Doing it again gives the same.
 * Errors: `session_not_found`, `erasure_refused`, `stream_damaged` where that can't be recorded, `store_unavailable`:
 * it may be done all the same, and is gone on with.
 */
export const eraseSession = (
  context: EraseContext,
  actor: Actor,
  sessionId: string,
  grounds: Grounds,
): Promise<ErasedStream> => eraseOwn('session', context, actor, { ...grounds, id: sessionId });

/** The same for an agent; its sessions keep their own texts. Errors: `agent_not_found`, as above. */
export const eraseAgent = (
  context: EraseContext,
  actor: Actor,
  agentId: string,
  grounds: Grounds,
): Promise<ErasedStream> => eraseOwn('agent', context, actor, { ...grounds, id: agentId });
