import type { SQLInputValue } from 'node:sqlite';
import type { ReplayReads } from '../../../shared/replays/replayReads.ts';
import { replayTurnConditions } from '../../../shared/replays/turnFilter.ts';
import type { Follower } from './follower.ts';
import { rowReader } from './rowReader.ts';

/** The queries of replays: a part of the read models. */
export function replayReads(follower: Follower): ReplayReads {
  const replays = rowReader(follower, 'replays');
  const sessions = rowReader(follower, 'replay_sessions');
  const turns = rowReader(follower, 'replay_turns');
  return {
    findReplay: async (replayId) => replays.find('WHERE replay_id = ?', replayId),
    listRunningReplays: async (limit, accountId) =>
      follower
        .current()
        .all(
          "SELECT replay_id FROM replays WHERE status = 'running' AND account_id = coalesce(?, account_id) ORDER BY replay_id LIMIT ?",
          accountId ?? null,
          limit,
        )
        .map((found) => found['replay_id'] as string),
    listReplays: async (accountId, page) => {
      const before: SQLInputValue[] = page.after === undefined ? [] : [page.after];
      return replays.page(
        page,
        `replays WHERE account_id = ? AND status <> 'erased'${before.length > 0 ? ' AND replay_id < ?' : ''} ORDER BY replay_id DESC`,
        accountId,
        ...before,
      );
    },
    findReplaySession: async (replayId, sessionId) =>
      sessions.find('WHERE replay_id = ? AND session_id = ?', replayId, sessionId),
    listReplaySessions: async (replayId, page) =>
      sessions.page(
        page,
        'replay_sessions WHERE replay_id = ? AND session_id > ? ORDER BY session_id',
        replayId,
        page.after ?? '',
      ),
    listReplayTurns: async (replayId, page) => {
      const { columns, fixed } = replayTurnConditions(page);
      const conditions = ['replay_id = ?', ...columns.map(([column]) => `${column} ?`), ...fixed];
      return turns.page(
        page,
        `replay_turns WHERE ${conditions.join(' AND ')} ORDER BY entry`,
        replayId,
        ...columns.map(([, value]) => value),
      );
    },
  };
}
