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
import { readRecordedOwner } from '../eventlog/reading/streamOwner.ts';
import { createErasureTarget } from './readForErasure.ts';
import { erasureRefusedError } from './errors.ts';
import {
  requireErasable,
  requireNoHold,
  trustedTime,
  type ErasureContext,
  type RetentionPolicy,
} from './retention/requireErasable.ts';

export interface AccountContext extends ErasureContext {
  /** Read models that include events up to this position. */
  readModelsAt: (position: Position) => Promise<OwnedStreamQueries>;
  /** Called for each erased stream. */
  onErased?: ((erased: ErasedStream) => void) | undefined;
  /** How long other processes may take to notice that the account is closed, in milliseconds. */
  noticedMs?: number;
  /** How long they may retry an append that began before that; 0 by default. */
  appendWaitMs?: number;
}

/** The counts of an erasure so far. */
interface AccountProgress {
  sessions: number;
  agents: number;
  webhooks: number;
  replays: number;
}

const countOf = ({ sessions, agents, webhooks, replays }: AccountProgress): number =>
  sessions + agents + webhooks + replays;

interface EraseOptions {
  note?: string | undefined;
  signal: AbortSignal;
  onProgress?: (progress: AccountProgress) => void;
  /** True to continue even if the account's own stream is damaged and may contain a hold. */
  damaged?: boolean | undefined;
}

export interface ErasedAccount extends AccountProgress {
  /** Undefined when the account's own stream can't record it. */
  erasure: ErasedStream | undefined;
  /**
   * Streams in which the erasure can't be recorded. The keys that were found in them are destroyed.
   */
  unrecorded: string[];
  /**
   * Streams that were kept: parked ones whose owner is unknown, and those that only their rows give to
   * the account.
   */
  unowned: string[];
}

/** So long after the read models show it, every process has evicted the account and ended its runs. */
const NOTICED_MS = 3_000;

type AccountPolicy = RetentionPolicy & Pick<AccountState, 'erased'>;

async function readPolicyRow(context: AccountContext, accountId: string): Promise<AccountPolicy[]> {
  const end = await context.store.head();
  const row = end && (await (await context.readModelsAt(end)).findAccount(accountId));
  return row ? [row] : [];
}

/**
 * The retention policy from the account's stream. If the stream is damaged or missing, the policies
 * from its readable events and from the account's row.
 */
async function readPolicies(
  context: AccountContext,
  accountId: string,
  damaged: boolean,
): Promise<AccountPolicy[]> {
  try {
    const policy = await readRetentionPolicy(context, accountId);
    if (policy.opened || !damaged) return [policy];
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    const { state } = await createErasureTarget(accountStream(accountId), context.store.keys).load(
      context,
    );
    const readable = state.folded as AccountState;
    if (readable.erased) return [readable];
    if (!damaged)
      throw erasureRefusedError(
        `Whether the account is held, or has to keep its sessions, can't be told. ${error.message} If it may be erased, an operator runs: accounts erase <account_id> --damaged.`,
      );
    return [readable, ...(await readPolicyRow(context, accountId))];
  }
  return readPolicyRow(context, accountId);
}

/**
 * Checks before the erasure that no hold or minimum retention applies, and that all streams of the
 * account can be found. An account that is already closed passes the check.
 */
async function requireNothingKept(
  context: AccountContext,
  accountId: string,
  damaged: boolean,
): Promise<void> {
  const policies = await readPolicies(context, accountId, damaged);
  const end = await context.store.head();
  // A closed account was not held, so one that is both was not closed by an erasure.
  for (const policy of policies) if (policy.erased) requireNoHold(policy);
  if (end === undefined || policies.some(({ erased }) => erased)) return;
  // The decider checks the hold of an undamaged account.
  if (damaged) policies.forEach(requireNoHold);
  const readModels = await context.readModelsAt(end);
  await findParkedStreams(context.store, readModels, accountId);
  if (context.minimumIsOver) return;
  const minimums = policies.filter(({ retention }) => retention.minimum_days !== undefined);
  if (minimums.length === 0) return;
  const trusted = await trustedTime(context);
  for await (const { updated_at } of listOwnedSessions(readModels, accountId))
    for (const policy of minimums) requireErasable(policy, updated_at, trusted.now, trusted.late);
}

/**
 * Permanently closes the actor's account, so that nothing can be added, and then erases everything
 * that it owns. After an abort or a crash, the next call or a running service continues. Errors:
 * Rejection (the account does not exist or is on hold), `erasure_refused` (a session is within its
 * minimum retention, the account's stream is damaged, or some of its streams can't be found),
 * `release_too_old`, `store_unavailable`, the abort reason.
 */
export async function eraseAccount(
  context: AccountContext,
  actor: Actor,
  { note, signal, onProgress, damaged = false }: EraseOptions,
): Promise<ErasedAccount> {
  const { account_id } = actor;
  const done: AccountProgress = { sessions: 0, agents: 0, webhooks: 0, replays: 0 };
  const unrecorded = new Set<string>();
  const unowned = new Set<string>();
  const { noticedMs = NOTICED_MS, appendWaitMs = 0 } = context;

  /**
   * Resolves with undefined when the stream can't record its erasure. The decider rejects a missing
   * stream.
   */
  async function tryErase(
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
    // Rows alone must not decide what is erased: another account may have to keep it.
    const owner = await readRecordedOwner(context, stream);
    if (owner !== undefined && owner !== account_id) return void unowned.add(stream);
    const erased = await tryErase(stream, true, eraseStream);
    if (erased && erased.position > last) last = erased.position;
    if (erased && !erased.again) done[`${streamKind(stream)}s` as keyof AccountProgress] += 1;
    onProgress?.(done);
  }

  /** Resolves with true when a stream was erased. */
  async function eraseAll(readModels: OwnedStreamQueries): Promise<boolean> {
    const before = countOf(done);
    const parked = await findParkedStreams(context.store, readModels, account_id);
    parked.unowned.forEach((stream) => unowned.add(stream));
    for await (const stream of listOwnedStreams(readModels, account_id, parked))
      await eraseOne(stream);
    return countOf(done) > before;
  }

  await requireNothingKept(context, account_id, damaged);
  const erasure = await tryErase(accountStream(account_id), damaged, recordErasure);
  let last = erasure?.position ?? (await context.store.head())!;
  const readModels = await context.readModelsAt(last);
  const lastAppendAt = performance.now() + noticedMs + appendWaitMs;
  await eraseAll(readModels);
  await sleep(Math.max(0, lastAppendAt - performance.now()), signal);
  // Other processes may have created streams until then.
  last = (await context.store.head()) ?? last;
  let more = true;
  while (more) more = await eraseAll(await context.readModelsAt(last));
  if (erasure) await endErasure(context, erasure, actor);
  return { ...done, erasure, unrecorded: [...unrecorded], unowned: [...unowned] };
}
