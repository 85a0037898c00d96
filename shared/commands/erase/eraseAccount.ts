import { isTurnlogError } from '../../errors.ts';
import { accountStream, agentStream, sessionStream, streamKind } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import { pauseFor } from '../../pause.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { Page, PageOf, ReadModels } from '../../ports/readModels.ts';
import type { Actor } from '../context.ts';
import type { HandleContext } from '../handle.ts';
import { ownerOf } from './ownerOf.ts';
import { keepingOf, requireErasable } from './requireErasable.ts';
import { endErasure, eraseStream, recordErasure, type ErasedStream } from './eraseStream.ts';

type Owned = Pick<
  ReadModels,
  'listAgents' | 'listSessions' | 'listParkedStreams' | 'findAgent' | 'findSession'
>;

export interface AccountContext extends HandleContext {
  /** Read models that show the erasure there, or later. Errors: `store_unavailable`. */
  readModelsAt: (position: Position) => Promise<Owned>;
  /** Told of each stream that is erased. */
  onErased?: ((erased: ErasedStream) => void) | undefined;
}

/** What has been erased so far. */
export interface AccountProgress {
  sessions: number;
  agents: number;
}

interface Going {
  note?: string | undefined;
  signal: AbortSignal;
  onProgress?: (progress: AccountProgress) => void;
}

export interface ErasedAccount extends AccountProgress {
  erasure: ErasedStream;
  /** Damaged streams whose keys are destroyed, and whose logs can't say so. */
  unrecorded: string[];
}

/** Looked at in one round: each that is erased is parked no more. */
const MOST_PARKED = 10_000;
const PAGE = { limit: 100, bytes: LIMITS.http.pageBytes };
/** By then every process has noticed that the account is no more, and has ended its runs. */
const NOTICED_MS = 3_000;

/** The streams that an account has, page by page, as the read models show them. */
async function* streamsOf<Row>(
  list: (page: Page) => Promise<PageOf<Row>>,
  idOf: (row: Row) => string,
  streamOf: (id: string) => string,
): AsyncGenerator<string> {
  let after: string | undefined;
  for (;;) {
    const { rows, more } = await list({ ...PAGE, ...(after !== undefined && { after }) });
    for (const row of rows) yield streamOf(idOf(row));
    const last = rows.at(-1);
    if (!more || !last) return;
    after = idOf(last);
  }
}

const ownedBy = (readModels: Owned, accountId: string) => ({
  sessions: streamsOf(
    (page) => readModels.listSessions(accountId, page),
    ({ session_id }) => session_id,
    sessionStream,
  ),
  agents: streamsOf(
    (page) => readModels.listAgents(accountId, page),
    ({ agent_id }) => agent_id,
    agentStream,
  ),
});

/** The sessions of an account that no row shows, because they were parked at their first event. */
async function* parkedSessions(
  { store }: Pick<HandleContext, 'store'>,
  readModels: Owned,
  accountId: string,
): AsyncGenerator<string> {
  for (const { stream } of (await readModels.listParkedStreams(MOST_PARKED)).streams) {
    const isOwn =
      streamKind(stream) === 'session' &&
      (await ownerOf({ store, readModels }, stream)) === accountId;
    if (isOwn) yield stream;
  }
}

/**
 * Asks before anything is erased: an account that is closed keeps nothing of its sessions.
 * Errors: `erasure_refused` while one of them is to be kept, `store_unavailable`.
 */
async function requireNothingKept(context: AccountContext, accountId: string): Promise<void> {
  const keeping = await keepingOf(context, accountId);
  const end = await context.store.head();
  if (keeping.erased || keeping.retention.minimum_days === undefined || end === undefined) return;
  const readModels = await context.readModelsAt(end);
  const now = context.clock.now();
  let after: string | undefined;
  for (;;) {
    const page = { ...PAGE, ...(after !== undefined && { after }) };
    const { rows, more } = await readModels.listSessions(accountId, page);
    for (const { updated_at } of rows) requireErasable(keeping, updated_at, now);
    after = rows.at(-1)?.session_id;
    if (!more || after === undefined) return;
  }
}

/**
 * Closes the actor's account for good, then erases all that it owns: first what its keys could still
 * change, so that nothing is added meanwhile. What a signal or a crash ends is gone on with by the
 * next call, or by a running service.
 * Errors: Rejection (there is no such account, or it is held), `erasure_refused` (a session is to be
 * kept for longer), `store_unavailable`, the signal's reason.
 */
export async function eraseAccount(
  context: AccountContext,
  actor: Actor,
  { note, signal, onProgress }: Going,
): Promise<ErasedAccount> {
  const { readModelsAt, onErased } = context;
  const { account_id } = actor;
  const stream = accountStream(account_id);
  const done: AccountProgress = { sessions: 0, agents: 0 };
  const unrecorded = new Set<string>();

  async function eraseOne(owned: string): Promise<boolean> {
    signal.throwIfAborted();
    if (unrecorded.has(owned)) return false;
    try {
      const erased = await eraseStream(context, owned, { reason: 'account', note }, actor);
      onErased?.(erased);
      if (erased.position > last) last = erased.position;
      return !erased.again;
    } catch (error) {
      if (!isTurnlogError(error, 'stream_damaged')) throw error;
      unrecorded.add(owned);
      return false;
    }
  }

  /** True where there was anything. */
  async function eraseAll(): Promise<boolean> {
    const before = done.sessions + done.agents;
    const readModels = await readModelsAt(last);
    const { sessions, agents } = ownedBy(readModels, account_id);
    const parked = parkedSessions(context, readModels, account_id);
    for (const [kind, streams] of [
      ['sessions', sessions],
      ['agents', agents],
      ['sessions', parked],
    ] as const)
      for await (const each of streams) {
        if (await eraseOne(each)) done[kind] += 1;
        onProgress?.(done);
      }
    return done.sessions + done.agents > before;
  }

  await requireNothingKept(context, account_id);
  const erasure = await recordErasure(context, stream, { reason: 'request', note }, actor);
  onErased?.(erasure);
  let last = erasure.position;
  const recordedAt = performance.now();
  let more = await eraseAll();
  await pauseFor(Math.max(0, recordedAt + NOTICED_MS - performance.now()), signal);
  do more = await eraseAll();
  while (more);
  await endErasure(context, erasure, actor);
  return { ...done, erasure, unrecorded: [...unrecorded] };
}
