import type { Page } from '../../../shared/ports/readModels.ts';
import type { ReplayReads, ReplayTurnFilter } from '../../../shared/replays/replayReads.ts';
import { replayTurnConditions } from '../../../shared/replays/turnFilter.ts';
import { selectPage } from './pages.ts';
import { pageReader, rowReader, type Reader } from './rowReader.ts';
import { liveSchema, VERSION } from './version.ts';

const LIVE = liveSchema(VERSION);

const listReplays = (accountId: string, page: Page) =>
  selectPage(
    {
      table: 'replays',
      key: 'replay_id',
      descending: true,
      where: `replays.account_id = $1 AND replays.status <> 'erased'${page.after === undefined ? '' : ' AND replays.replay_id < $2'}`,
      parameters: [accountId, ...(page.after === undefined ? [] : [page.after])],
    },
    page,
  );

const listReplaySessions = (replayId: string, page: Page) =>
  selectPage(
    {
      table: 'replay_sessions',
      key: 'session_id',
      where: 'replay_sessions.replay_id = $1 AND replay_sessions.session_id > $2',
      parameters: [replayId, page.after ?? ''],
    },
    page,
  );

function listReplayTurns(replayId: string, page: Page & ReplayTurnFilter) {
  const { columns, fixed } = replayTurnConditions(page);
  const conditions = columns.map(([column], index) => `${column} $${index + 2}`);
  return selectPage(
    {
      table: 'replay_turns',
      key: 'entry',
      where: ['replay_id = $1', ...conditions, ...fixed]
        .map((condition) => `replay_turns.${condition}`)
        .join(' AND '),
      parameters: [replayId, ...columns.map(([, value]) => value)],
    },
    page,
  );
}

/** The queries of replays: a part of the read models. */
export function replayReads(reader: Reader): ReplayReads {
  const replays = rowReader(reader, 'replays');
  const sessions = rowReader(reader, 'replay_sessions');
  const page = pageReader(reader);
  return {
    findReplay: (replayId) => replays.find('WHERE replay_id = $1', replayId),
    listRunningReplays: async (limit, accountId) => {
      const found = await reader.rows<{ replay_id: string }>(
        `SELECT replay_id FROM ${LIVE}.replays WHERE status = 'running' AND account_id = coalesce($2, account_id) ORDER BY replay_id LIMIT $1`,
        [limit, accountId ?? null],
      );
      return found.map(({ replay_id }) => replay_id);
    },
    listReplays: (accountId, of) => page('replays', listReplays(accountId, of)),
    findReplaySession: (replayId, sessionId) =>
      sessions.find('WHERE replay_id = $1 AND session_id = $2', replayId, sessionId),
    listReplaySessions: (replayId, of) => page('replay_sessions', listReplaySessions(replayId, of)),
    listReplayTurns: (replayId, of) => page('replay_turns', listReplayTurns(replayId, of)),
  };
}
