import { LRUCache } from 'lru-cache';
import { isTurnlogError, storeUnavailableError } from '../lib/errors/turnlogError.ts';
import { accountStream, agentStream, streamId, streamKind } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { EventStore, StoredEvent } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { AgentRow, ApiKeyRow } from '../readModels/tables.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';

/**
 * Together with the delay of the projector, this is less than a second. For that time, a key that
 * another replica revoked still works on this one.
 */
const KEY_FRESH_MS = 500;
/** How long cached rows are served while the read models are unavailable. */
const AWAY_MS = 120_000;
/** Slower read models count as unavailable, because a vanished host refuses no connections. */
const ANSWER_LIMIT_MS = 1_000;
/** A row with more later events than this counts as outdated, without a search through them. */
const MAX_LATER = 1_000;
const MAX_ROWS = 10_000;

/** The rows that every request or run reads first. */
export interface KnownRows extends Pick<
  ReadModels,
  'findApiKey' | 'findApiKeyByHash' | 'findAgent'
> {
  /** Forgets the texts of an erased agent or account, or of all of them without a stream. */
  forget?: (stream?: string) => void;
}

interface Memory<Row> {
  find: (id: string) => Promise<Row | undefined>;
  /** How long a row is used without another query, in milliseconds. */
  freshMs: number;
  lengthOf: (row: Row) => number;
  /** True when the log has later events that concern the row. Throws `store_unavailable`. */
  isOutdated: (row: Row) => Promise<boolean>;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
}

async function answerInTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  if (await resolvesWithin(answer, ANSWER_LIMIT_MS)) return answer;
  throw storeUnavailableError('The read models do not answer in time.');
}

/** Caches rows, but never their absence, because a row may be created at any time. */
function remembering<Row extends object>({
  find,
  freshMs,
  lengthOf,
  isOutdated,
  now,
}: Memory<Row>): { find: Memory<Row>['find']; forget: (id?: string) => void } {
  const rows = new LRUCache<string, { row: Row; askedAt: number }>({
    max: MAX_ROWS,
    maxSize: LIMITS.cache.rowChars,
    sizeCalculation: ({ row }) => lengthOf(row) + 1,
  });
  const findRemembered: Memory<Row>['find'] = async (id) => {
    const askedAt = now();
    const cached = rows.get(id);
    const age = cached ? askedAt - cached.askedAt : Infinity;
    if (cached && age < freshMs) return cached.row;
    try {
      const row = await (cached ? answerInTime(find(id)) : find(id));
      if (row) rows.set(id, { row, askedAt });
      else rows.delete(id);
      return row;
    } catch (error) {
      if (!cached || age >= AWAY_MS || !isTurnlogError(error, 'store_unavailable')) throw error;
      // Other replicas can still make changes while the read models are unavailable or slow here.
      if (await isOutdated(cached.row)) throw error;
      return cached.row;
    }
  };
  return {
    find: findRemembered,
    forget: (id) => void (id === undefined ? rows.clear() : rows.delete(id)),
  };
}

const keyIdOf = ({ data }: StoredEvent): unknown =>
  (JSON.parse(data) as { key_id?: unknown }).key_id;

/** Compares cached rows with the log while the read models are unavailable. */
const outdatedIn = ({ readStream }: Pick<EventStore, 'readStream'>) => ({
  async key({ account_id, key_id, revision }: ApiKeyRow): Promise<boolean> {
    const later = await readStream(accountStream(account_id), {
      direction: 'forwards',
      from: revision + 1,
      limit: MAX_LATER,
    });
    const concerns = (event: StoredEvent): boolean =>
      event.type === 'account.erased.v1' || keyIdOf(event) === key_id;
    return later.length === MAX_LATER || later.some(concerns);
  },
  async agent({ agent_id, revision }: AgentRow): Promise<boolean> {
    const from = revision + 1;
    const later = await readStream(agentStream(agent_id), {
      direction: 'forwards',
      from,
      limit: 1,
    });
    return later.length > 0;
  },
});

/**
 * Caches the rows that runs read, for read models in another process, which may be unavailable. API
 * keys are used for half a second without another query. Agents are queried every time, because
 * every later run must see every acknowledged change. While the read models do not answer, cached
 * rows are checked against the log, so that revoked keys and changed agents are refused. `now` is a
 * monotonic clock in milliseconds.
 */
export function cacheRowsForOutage(
  readModels: KnownRows,
  log: Pick<EventStore, 'readStream'>,
  now = (): number => performance.now(),
): KnownRows {
  const outdated = outdatedIn(log);
  const keys = (find: ReadModels['findApiKey']) =>
    remembering({
      find,
      freshMs: KEY_FRESH_MS,
      lengthOf: ({ hash, name }) => hash.length + name.length,
      isOutdated: outdated.key,
      now,
    });
  const byId = keys(readModels.findApiKey);
  const byHash = keys(readModels.findApiKeyByHash);
  const agents = remembering({
    find: readModels.findAgent,
    freshMs: 0,
    lengthOf: ({ instruction, name, parameters }) =>
      instruction.length +
      name.length +
      (parameters?.response_format?.json_schema?.schema.length ?? 0),
    isOutdated: outdated.agent,
    now,
  });
  return {
    findApiKey: byId.find,
    findApiKeyByHash: byHash.find,
    findAgent: agents.find,
    forget(stream) {
      const kind = stream && streamKind(stream);
      if (kind === 'agent') agents.forget(streamId(stream!));
      if (kind === undefined || kind === 'account')
        for (const { forget } of [byId, byHash, agents]) forget();
    },
  };
}
