import {
  agentStream,
  replayStream,
  sessionStream,
  streamKind,
  webhookStream,
} from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { EventLog } from '../ports/eventStore.ts';
import type { Page, PageOf, ReadModels } from '../ports/readModels.ts';
import type { SessionRow } from '../readModels/tables.ts';
import { findStreamOwner } from './ownerOf.ts';
import { erasureRefusedError } from './retention/requireErasable.ts';
import { ANY_REPLAY } from '../sessions/sessionFilter.ts';

/** What tells of the streams of an account. */
export type OwnedStreamQueries = Pick<
  ReadModels,
  | 'listAgents'
  | 'listSessions'
  | 'listWebhooks'
  | 'listReplays'
  | 'listParkedStreams'
  | 'findAccount'
  | 'findAgent'
  | 'findSession'
  | 'findWebhook'
  | 'findReplay'
>;

const PAGE = { limit: 100, bytes: LIMITS.http.pageBytes };

async function* pagesOf<Row>(
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
  pagesOf(
    (page) => readModels.listSessions(accountId, { ...page, replay_id: ANY_REPLAY }),
    ({ session_id }) => session_id,
  );

/** The parked streams of an account, and those of which nobody can tell whose they are. */
interface Parked {
  own: string[];
  unowned: string[];
}

/**
 * The parked sessions, agents, webhooks and replays: no row shows one that was parked at its first
 * event.
 */
export async function findParkedStreams(
  store: Pick<EventLog, 'readStream'>,
  readModels: OwnedStreamQueries,
  accountId: string,
): Promise<Parked> {
  const most = LIMITS.erasure.parkedStreams;
  const { count, streams } = await readModels.listParkedStreams(most);
  if (count > streams.length)
    throw erasureRefusedError(
      `${count} streams are parked, and whose they are is looked up for ${most} at the most: some of them may be the account's. Mend what parked them, rebuild the read models, and erase then.`,
    );
  const parked: Parked = { own: [], unowned: [] };
  for (const { stream } of streams) {
    if (!['agent', 'replay', 'session', 'webhook'].includes(streamKind(stream))) continue;
    const owner = await findStreamOwner({ store, readModels }, stream);
    if (owner === undefined) parked.unowned.push(stream);
    else if (owner === accountId) parked.own.push(stream);
  }
  return parked;
}

/** The streams of an account's replays, sessions, agents, webhooks, and what is parked of them. */
export async function* listOwnedStreams(
  readModels: OwnedStreamQueries,
  accountId: string,
  { own }: Parked,
): AsyncGenerator<string> {
  // First, so that no replay makes a session of one that is erased.
  const replays = pagesOf(
    (page) => readModels.listReplays(accountId, page),
    ({ replay_id }) => replay_id,
  );
  for await (const { replay_id } of replays) yield replayStream(replay_id);
  for await (const { session_id } of listOwnedSessions(readModels, accountId))
    yield sessionStream(session_id);
  const agents = pagesOf(
    (page) => readModels.listAgents(accountId, { ...page, deleted: true }),
    ({ agent_id }) => agent_id,
  );
  for await (const { agent_id } of agents) yield agentStream(agent_id);
  const webhooks = pagesOf(
    (page) => readModels.listWebhooks(accountId, { ...page, deleted: true }),
    ({ webhook_id }) => webhook_id,
  );
  for await (const { webhook_id } of webhooks) yield webhookStream(webhook_id);
  yield* own;
}
