import { LRUCache } from 'lru-cache';
import { isTurnlogError, storeUnavailableError } from '../lib/errors/turnlogError.ts';
import { accountStream, agentStream } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { EventStore, StoredEvent } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { AgentRow, ApiKeyRow } from '../readModels/tables.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';

/**
 * With the projector's delay less than a second: so long a key that another replica revoked still
 * works here.
 */
const KEY_FRESH_MS = 500;
/** How long rows that were read before serve runs while the read models are away. */
const AWAY_MS = 120_000;
/** Read models that take longer count as away: a vanished host refuses nothing. */
const ANSWER_LIMIT_MS = 1_000;
/** More events behind a row than this are not looked through: it counts as outdated. */
const MAX_LATER = 1_000;
const MAX_ROWS = 10_000;

/** What a request or a run reads before anything else. */
export interface KnownRows extends Pick<
  ReadModels,
  'findApiKey' | 'findApiKeyByHash' | 'findAgent'
> {
  /** Lets go of what is remembered, names among it, for an agent or an account that was erased. */
  forget?: () => void;
}

interface Memory<Row> {
  find: (id: string) => Promise<Row | undefined>;
  /** For how long a row is used without asking again. */
  freshMs: number;
  lengthOf: (row: Row) => number;
  /** Whether the log tells more of it than the row. Errors: `store_unavailable`. */
  isOutdated: (row: Row) => Promise<boolean>;
  /** In milliseconds of a monotonic clock. */
  now: () => number;
}

async function answerInTime<Answer>(asked: Promise<Answer>): Promise<Answer> {
  if (await resolvesWithin(asked, ANSWER_LIMIT_MS)) return asked;
  throw storeUnavailableError('The read models do not answer in time.');
}

/** What is not there is never remembered: it may be there at the next moment. */
function remembering<Row extends object>({
  find,
  freshMs,
  lengthOf,
  isOutdated,
  now,
}: Memory<Row>): { find: Memory<Row>['find']; clear: () => void } {
  const rows = new LRUCache<string, { row: Row; askedAt: number }>({
    max: MAX_ROWS,
    maxSize: LIMITS.cache.rowChars,
    sizeCalculation: ({ row }) => lengthOf(row) + 1,
  });
  const findRemembered: Memory<Row>['find'] = async (id) => {
    const askedAt = now();
    const known = rows.get(id);
    const age = known ? askedAt - known.askedAt : Infinity;
    if (known && age < freshMs) return known.row;
    try {
      const row = await (known ? answerInTime(find(id)) : find(id));
      if (row) rows.set(id, { row, askedAt });
      else rows.delete(id);
      return row;
    } catch (error) {
      if (!known || age >= AWAY_MS || !isTurnlogError(error, 'store_unavailable')) throw error;
      // Read models that are away for this process alone, or busy, keep nobody from a change.
      if (await isOutdated(known.row)) throw error;
      return known.row;
    }
  };
  return { find: findRemembered, clear: () => rows.clear() };
}

const keyIdOf = ({ data }: StoredEvent): unknown =>
  (JSON.parse(data) as { key_id?: unknown }).key_id;

/** What rows that the read models can't be asked for are compared with. */
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
 * Remembers what runs read, for read models in another process that may be away. API keys are used
 * for half a second without asking again. Agents are asked for each time: every acknowledged change
 * must be seen by every later run. While the read models don't answer, the log is asked whether what
 * is remembered still holds: a revoked key and a changed agent are refused then.
 * `now` in milliseconds of a monotonic clock.
 */
export function rememberedRows(
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
    forget: () => [byId, byHash, agents].forEach(({ clear }) => clear()),
  };
}
