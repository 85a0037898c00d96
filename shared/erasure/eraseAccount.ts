import type { AccountState } from '../accounts/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { accountStream, streamKind } from '../eventlog/streams.ts';
import { sleep } from '../lib/time/sleep.ts';
import type { Position } from '../ports/eventStore.ts';
import type { Actor } from '../commandHandling/context.ts';
import { endErasure, eraseStream, recordErasure, type ErasedStream } from './eraseStream.ts';
import { readRetentionPolicy } from './retention/retentionPolicy.ts';
import {
  findParkedStreams,
  listOwnedSessions,
  listOwnedStreams,
  type OwnedStreamQueries,
} from './ownedStreams.ts';
import { createErasureTarget } from './readForErasure.ts';
import {
  erasureRefusedError,
  requireErasable,
  requireNoHold,
  trustedTime,
  type ErasureContext,
  type RetentionPolicy,
} from './retention/requireErasable.ts';

export interface AccountContext extends ErasureContext {
  /** Read models that show the erasure there, or later. */
  readModelsAt: (position: Position) => Promise<OwnedStreamQueries>;
  /** Told of each stream that is erased. */
  onErased?: ((erased: ErasedStream) => void) | undefined;
  /** How long what is erased may be written to by those who have not noticed; milliseconds. */
  noticedMs?: number;
}

/** What has been erased so far. */
export interface AccountProgress {
  sessions: number;
  agents: number;
  webhooks: number;
  replays: number;
}

const countOf = ({ sessions, agents, webhooks, replays }: AccountProgress): number =>
  sessions + agents + webhooks + replays;

interface Going {
  note?: string | undefined;
  signal: AbortSignal;
  onProgress?: (progress: AccountProgress) => void;
  /** True to go on where the account's own stream is damaged, and may have said something of a hold. */
  damaged?: boolean | undefined;
}

export interface ErasedAccount extends AccountProgress {
  /** Undefined where the account's own log can't say so. */
  erasure: ErasedStream | undefined;
  /** Streams whose keys are destroyed as far as they were found, and whose logs can't say so. */
  unrecorded: string[];
  /** Parked streams that were left, because nobody can tell whose they are. */
  unowned: string[];
}

/** By then every process has noticed that the account is no more, and has ended its runs. */
const NOTICED_MS = 3_000;

type Kept = RetentionPolicy & Pick<AccountState, 'erased'>;

async function rowOf(context: AccountContext, accountId: string): Promise<Kept[]> {
  const end = await context.store.head();
  const row = end && (await (await context.readModelsAt(end)).findAccount(accountId));
  return row ? [row] : [];
}

/**
 * What is known of the keeping of an account: by its stream, or, where that is damaged or gone, by
 * what can be read of it and by its row.
 */
async function keepingsOf(
  context: AccountContext,
  accountId: string,
  damaged: boolean,
): Promise<Kept[]> {
  try {
    const whole = await readRetentionPolicy(context, accountId);
    if (whole.opened || !damaged) return [whole];
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    const { state } = await createErasureTarget(accountStream(accountId)).load(context);
    const readable = state.folded as AccountState;
    if (readable.erased) return [readable];
    if (!damaged)
      throw erasureRefusedError(
        `Nobody can tell whether the account is held, or has to keep its sessions. ${error.message} An operator who knows that it may go says so: accounts erase <account_id> --damaged.`,
      );
    return [readable, ...(await rowOf(context, accountId))];
  }
  return rowOf(context, accountId);
}

/**
 * Asks before anything is erased: an account that is closed keeps nothing of its sessions, and all
 * that it has must be found.
 */
async function requireNothingKept(
  context: AccountContext,
  accountId: string,
  damaged: boolean,
): Promise<void> {
  const keepings = await keepingsOf(context, accountId, damaged);
  const end = await context.store.head();
  if (end === undefined || keepings.some(({ erased }) => erased)) return;
  // Of one that is whole its decider knows.
  if (damaged) keepings.forEach(requireNoHold);
  const readModels = await context.readModelsAt(end);
  await findParkedStreams(context.store, readModels, accountId);
  const keeping = keepings.filter(({ retention }) => retention.minimum_days !== undefined);
  if (keeping.length === 0) return;
  const now = await trustedTime(context);
  for await (const { updated_at } of listOwnedSessions(readModels, accountId))
    for (const each of keeping) requireErasable(each, updated_at, now);
}

/**
 * Closes the actor's account for good, then erases all that it owns: first what its keys could still
 * change, so that nothing is added meanwhile. What a signal or a crash ends is gone on with by the
 * next call, or by a running service.
 * Errors: Rejection (there is no such account, or it is held), `erasure_refused` (a session is to be
 * kept for longer, the account's stream is damaged, or some of its streams can't be found),
 * `release_too_old`, `store_unavailable`, the signal's reason.
 */
export async function eraseAccount(
  context: AccountContext,
  actor: Actor,
  { note, signal, onProgress, damaged = false }: Going,
): Promise<ErasedAccount> {
  const { account_id } = actor;
  const done: AccountProgress = { sessions: 0, agents: 0, webhooks: 0, replays: 0 };
  const unrecorded = new Set<string>();
  const unowned = new Set<string>();

  /** Undefined where the log of the stream can't say it: to its decider one that is gone is none. */
  async function recorded(
    stream: string,
    mayBeGone: boolean,
    erase: typeof eraseStream,
  ): Promise<ErasedStream | undefined> {
    const reason = streamKind(stream) === 'account' ? 'request' : 'account';
    try {
      const erased = await erase(context, stream, { reason, note }, actor);
      context.onErased?.(erased);
      return erased;
    } catch (error) {
      const isGone = mayBeGone && error instanceof Rejection;
      if (!isGone && !isTurnlogError(error, 'stream_damaged')) throw error;
      unrecorded.add(stream);
      return undefined;
    }
  }

  async function eraseOne(stream: string): Promise<void> {
    signal.throwIfAborted();
    if (unrecorded.has(stream)) return;
    const erased = await recorded(stream, true, eraseStream);
    if (erased && erased.position > last) last = erased.position;
    if (erased && !erased.again) done[`${streamKind(stream)}s` as keyof AccountProgress] += 1;
    onProgress?.(done);
  }

  /** True where there was anything. */
  async function eraseAll(): Promise<boolean> {
    const before = countOf(done);
    const readModels = await context.readModelsAt(last);
    const parked = await findParkedStreams(context.store, readModels, account_id);
    parked.unowned.forEach((stream) => unowned.add(stream));
    for await (const stream of listOwnedStreams(readModels, account_id, parked))
      await eraseOne(stream);
    return countOf(done) > before;
  }

  await requireNothingKept(context, account_id, damaged);
  const erasure = await recorded(accountStream(account_id), damaged, recordErasure);
  let last = erasure?.position ?? (await context.store.head())!;
  const recordedAt = performance.now();
  let more = await eraseAll();
  await sleep(
    Math.max(0, recordedAt + (context.noticedMs ?? NOTICED_MS) - performance.now()),
    signal,
  );
  do more = await eraseAll();
  while (more);
  if (erasure) await endErasure(context, erasure, actor);
  return { ...done, erasure, unrecorded: [...unrecorded], unowned: [...unowned] };
}
