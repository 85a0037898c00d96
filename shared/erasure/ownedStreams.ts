import type { FeatureStream } from '../features.ts';
import {
  agentStream,
  isIdOf,
  replayStream,
  sessionStream,
  streamId,
  streamKind,
  webhookStream,
} from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import { isOwnStream, readRecordedOwner } from '../eventlog/reading/streamOwner.ts';
import type { EventLog } from '../ports/eventStore.ts';
import type { Page, PageOf, ReadModels } from '../ports/readModels.ts';
import type { SessionRow } from '../readModels/tables.ts';
import { erasureRefusedError } from './errors.ts';
import { ANY_REPLAY } from '../sessions/sessionFilter.ts';

/** Kinds of streams that belong to an account and are erased with it. */
type OwnedKind = Exclude<Extract<FeatureStream, { erasure: unknown }>['kind'], 'account'>;

type OwnerQueries = Pick<ReadModels, 'findSession' | 'findAgent' | 'findWebhook' | 'findReplay'>;

/** The queries that find the streams of an account. */
export type OwnedStreamQueries = OwnerQueries &
  Pick<
    ReadModels,
    | 'listAgents'
    | 'listSessions'
    | 'listWebhooks'
    | 'listReplays'
    | 'listParkedStreams'
    | 'findAccount'
  >;

const PAGE = { limit: 100, bytes: LIMITS.http.pageBytes };

async function* readPages<Row>(
  list: (page: Page) => Promise<PageOf<Row>>,
  idOf: (row: Row) => string,
): AsyncGenerator<Row> {
  let after: string | undefined;
  for (;;) {
    const { rows, more } = await list({ ...PAGE, ...(after !== undefined && { after }) });
    yield* rows;
    const last = rows.at(-1);
    if (!more || !last) return;
    after = idOf(last);
  }
}

/** The sessions of an account that are not erased, as the read models show them. */
export const listOwnedSessions = (
  readModels: OwnedStreamQueries,
  accountId: string,
): AsyncGenerator<SessionRow> =>
  readPages(
    (page) => readModels.listSessions(accountId, { ...page, replay_id: ANY_REPLAY }),
    ({ session_id }) => session_id,
  );

/** For each kind, lists an account's streams and finds the row of one stream. */
const OWNED: {
  readonly [Kind in OwnedKind]: {
    list: (readModels: OwnedStreamQueries, accountId: string) => AsyncIterable<string>;
    find: (readModels: OwnerQueries, id: string) => Promise<{ account_id: string } | undefined>;
  };
} = {
  // Replays come first, so that none starts a session from an erased one.
  replay: {
    async *list(readModels, accountId) {
      const rows = readPages(
        (page) => readModels.listReplays(accountId, page),
        ({ replay_id }) => replay_id,
      );
      for await (const { replay_id } of rows) yield replayStream(replay_id);
    },
    find: ({ findReplay }, id) => findReplay(id),
  },
  session: {
    async *list(readModels, accountId) {
      for await (const { session_id } of listOwnedSessions(readModels, accountId))
        yield sessionStream(session_id);
    },
    find: ({ findSession }, id) => findSession(id),
  },
  agent: {
    async *list(readModels, accountId) {
      const rows = readPages(
        (page) => readModels.listAgents(accountId, { ...page, deleted: true }),
        ({ agent_id }) => agent_id,
      );
      for await (const { agent_id } of rows) yield agentStream(agent_id);
    },
    find: ({ findAgent }, id) => findAgent(id),
  },
  webhook: {
    async *list(readModels, accountId) {
      const rows = readPages(
        (page) => readModels.listWebhooks(accountId, { ...page, deleted: true }),
        ({ webhook_id }) => webhook_id,
      );
      for await (const { webhook_id } of rows) yield webhookStream(webhook_id);
    },
    find: ({ findWebhook }, id) => findWebhook(id),
  },
};

const isOwnedKind = (kind: string): kind is OwnedKind => Object.hasOwn(OWNED, kind);

interface OwnerSources {
  store: Pick<EventLog, 'readStream'>;
  readModels: OwnerQueries;
}

/**
 * The account that owns a stream; undefined when neither the log nor the read models contain it.
 */
export async function findStreamOwner(
  sources: OwnerSources,
  stream: string,
): Promise<string | undefined> {
  const recorded = await readRecordedOwner(sources, stream);
  if (recorded !== undefined) return recorded;
  const kind = streamKind(stream) as OwnedKind;
  return (await OWNED[kind].find(sources.readModels, streamId(stream)))?.account_id;
}

/**
 * The stream of an account's agent, replay, session or webhook by its id; undefined for an unknown
 * id and, after the same work, for one of another account. Errors: `store_unavailable`.
 */
export async function findOwnSubject(
  sources: OwnerSources,
  accountId: string,
  id: string,
): Promise<string | undefined> {
  const kind = id.slice(0, Math.max(0, id.indexOf('_')));
  if (!isOwnedKind(kind) || !isIdOf(kind, id)) return undefined;
  const stream = `${kind}-${id}`;
  const findRow = () => OWNED[kind].find(sources.readModels, id);
  return (await isOwnStream(sources, accountId, stream, findRow)) ? stream : undefined;
}

/** The parked streams of an account, and those whose owner is unknown. */
interface ParkedStreams {
  own: string[];
  unowned: string[];
}

/**
 * The parked streams that an account may own. A stream that was parked at its first event has no
 * row. Throws `erasure_refused` when too many streams are parked.
 */
export async function findParkedStreams(
  store: Pick<EventLog, 'readStream'>,
  readModels: OwnedStreamQueries,
  accountId: string,
): Promise<ParkedStreams> {
  const limit = LIMITS.erasure.parkedStreams;
  const { count, streams } = await readModels.listParkedStreams(limit);
  if (count > streams.length)
    throw erasureRefusedError(
      `${count} streams are parked, and owners are looked up for ${limit} at most: some of them may belong to the account. Fix what parked them, rebuild the read models, and erase then.`,
    );
  const parked: ParkedStreams = { own: [], unowned: [] };
  for (const { stream } of streams) {
    if (!isOwnedKind(streamKind(stream))) continue;
    const owner = await findStreamOwner({ store, readModels }, stream);
    if (owner === undefined) parked.unowned.push(stream);
    else if (owner === accountId) parked.own.push(stream);
  }
  return parked;
}

/** The streams that an account owns, including its parked streams. */
export async function* listOwnedStreams(
  readModels: OwnedStreamQueries,
  accountId: string,
  { own }: ParkedStreams,
): AsyncGenerator<string> {
  for (const { list } of Object.values(OWNED)) yield* list(readModels, accountId);
  yield* own;
}
