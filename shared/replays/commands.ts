import { replay } from './decider.ts';
import type { ReplayStartedData } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { findFirstEvent } from '../eventlog/reading/readWhole.ts';
import { replayStream } from '../eventlog/streams.ts';
import type { PermitPool } from '../lib/concurrency/capacity.ts';
import { runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { LIMITS } from '../limits.ts';
import { findOwnAgent } from '../agents/queries.ts';
import { requireSupported, type AgentCatalogue } from '../agents/catalogue.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { type Claim, createOnce } from '../requests/idempotency.ts';
import { newStreamTarget, wholeStreamTarget } from '../commandHandling/targetStream.ts';
import { findOwnReplay } from './queries.ts';
import { readAgentAt } from './turns/agentAt.ts';

/** The input of a replay. All its sessions belong to the account. */
export type ReplayInput = ReplayStartedData;

export type ReplayContext = CommandContext & {
  catalogue: AgentCatalogue;
  replayStarts: PermitPool;
  onClientDisconnect?: (onDisconnect: (reason: Error) => void) => () => void;
};

/** Finds the input of a replay, which may be thousands of sessions, until its client has left. */
type FindInput = (signal: AbortSignal) => Promise<ReplayInput>;

interface StartedReplay {
  replay_id: string;
  created_at: string;
}

const refused = (field: string, message: string): TurnlogError =>
  new TurnlogError('invalid_request', `The replay is not valid: "${field}" ${message}.`, {
    details: { [field]: { message: `"${field}" ${message}.`, path: `/${field}` } },
  });

function requireBounds({ sessions, concurrency, from_turn, up_to_turn }: ReplayInput): void {
  const limits = LIMITS.replays;
  if (sessions.length === 0) throw refused('sessions', 'must name a session');
  if (sessions.length > limits.sessions)
    throw refused('sessions', `must not be more than ${limits.sessions}`);
  if (new Set(sessions.map(({ session_id }) => session_id)).size < sessions.length)
    throw refused('sessions', 'must not name a session twice');
  if (concurrency < 1 || concurrency > limits.concurrency)
    throw refused('concurrency', `must be 1 to ${limits.concurrency}`);
  if (up_to_turn !== undefined && up_to_turn < (from_turn ?? 1))
    throw refused('turns/up_to', 'must not be less than "from"');
}

async function requireReplayCapacity(
  { readModels }: ReplayContext,
  accountId: string,
): Promise<void> {
  const { running: limit, runningOfAll } = LIMITS.replays;
  if ((await readModels.listRunningReplays(limit, accountId)).length >= limit)
    throw new TurnlogError(
      'replay_limit_reached',
      `The account has ${limit} replays that run, and may have no more: cancel one, or wait.`,
    );
  if ((await readModels.listRunningReplays(runningOfAll)).length >= runningOfAll)
    throw new TurnlogError(
      'overloaded',
      `The service runs ${runningOfAll} replays, of all accounts, and takes no more until one of them has ended.`,
      { retriable: true, retryAfterSeconds: 60 },
    );
}

/**
 * Runs a part of a start after earlier ones of the account, so that the sessions of only one replay
 * are in memory, and each start sees earlier ones in the read models. Throws `rate_limited`,
 * `overloaded` or the reason of the client's disconnect.
 */
async function runInTurn<Result>(
  { readModels, replayStarts, onClientDisconnect }: ReplayContext,
  account_id: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  using held = new DisposableStack();
  held.use(replayStarts.acquire({ account_id }));
  const leaving = new AbortController();
  const { signal } = leaving;
  const stopWatching = onClientDisconnect?.((reason) => leaving.abort(reason));
  if (stopWatching) held.defer(stopWatching);
  const lock = { owner: readModels, key: `replays/${account_id}`, account_id };
  return await runExclusiveFairly(lock, async () => {
    signal.throwIfAborted();
    return work(signal);
  });
}

async function findStartable(
  context: ReplayContext,
  account_id: string,
  findInput: () => Promise<ReplayInput>,
): Promise<ReplayInput> {
  await requireReplayCapacity(context, account_id);
  const input = await findInput();
  requireBounds(input);
  const { agent_id, agent_revision, model, tools } = input;
  requireSupported(context.catalogue, model, undefined);
  if (agent_id === undefined) return input;
  const agent =
    agent_revision === undefined
      ? await findOwnAgent(context.readModels, account_id, agent_id)
      : await readAgentAt(context, { account_id, agent_id, revision: agent_revision });
  requireSupported(
    context.catalogue,
    model ?? agent.model,
    tools === 'live' ? (agent.tool ?? undefined) : undefined,
  );
  return { ...input, agent_revision: agent.revision };
}

/**
 * Validates the input of a replay and fixes the revision of its agent. `findInput` is only called if
 * the account may have another replay. Errors: those of findInput, `rate_limited`, `overloaded`.
 */
export const resolveReplayInput = (
  context: ReplayContext,
  { account_id }: Pick<Actor, 'account_id'>,
  findInput: FindInput,
): Promise<ReplayInput> =>
  runInTurn(context, account_id, (signal) =>
    findStartable(context, account_id, () => findInput(signal)),
  );

/** The replay that an earlier attempt of the request started, if any. */
async function startedBefore(
  context: ReplayContext,
  replay_id: string,
): Promise<StartedReplay | undefined> {
  const started = await findFirstEvent(context, replayStream(replay_id));
  if (!started) return undefined;
  await waitUntilVisible(context, started.recorded.position);
  return { replay_id, created_at: started.recorded.metadata.recorded_at };
}

/**
 * Starts a replay of the actor's sessions in the background. The replay is visible when the promise
 * resolves. An agent without a revision runs at its newest one. `findInput` is only called if no
 * earlier attempt of the request has started the replay. Errors: those of findInput,
 * resolveReplayInput and handle, `payload_too_large`.
 */
export function startReplay(
  context: ReplayContext,
  actor: Actor,
  findInput: FindInput,
  claim?: Claim,
): Promise<StartedReplay> {
  const replay_id = claim?.reserved.id ?? context.ids.typeId('replay');
  const { account_id } = actor;
  const before = () => startedBefore(context, replay_id);
  const create = (): Promise<StartedReplay> =>
    runInTurn(context, account_id, async (signal) => {
      // A concurrent attempt may have started the replay.
      const started = claim && (await before());
      if (started) {
        context.onIdempotentReplay?.();
        return started;
      }
      const input = await findStartable(context, account_id, () => findInput(signal));
      const command = { type: 'start_replay', replay: input } as const;
      const target = newStreamTarget(replayStream(replay_id), replay);
      const { position, recorded_at } = (await handle(context, actor, target, command))!;
      await waitUntilVisible(context, position);
      return { replay_id, created_at: recorded_at };
    });
  return createOnce(context, claim, { findExisting: before, create });
}

/**
 * Cancels the account's replay: no further turn starts, and running turns are interrupted. An ended
 * replay does not change. Errors: `replay_not_found`, those of handle.
 */
export async function cancelReplay(
  context: CommandContext,
  actor: Actor,
  replayId: string,
): Promise<void> {
  const { status } = await findOwnReplay(context, actor.account_id, replayId);
  // The stream of an ended replay may be long, and nothing is appended to it.
  if (status !== 'running') return;
  const target = wholeStreamTarget(replayStream(replayId), replay);
  const command = { type: 'end_replay', status: 'cancelled' } as const;
  const appended = await handle(context, actor, target, command);
  if (appended) await waitUntilVisible(context, appended.position);
}
