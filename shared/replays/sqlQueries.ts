import type { Page, PageOf } from '../readModels/page.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import { shownOwner } from '../readModels/statements.ts';
import type {
  ReplayRow,
  ReplaySessionRow,
  ReplaySettingsRow,
  ReplayTurnRow,
} from '../readModels/tables.ts';
import type { TurnOutcome } from './events.ts';
import { replayEntry } from './tables.ts';

/** Selects turns of a replay; all conditions apply. */
export interface ReplayTurnFilter {
  /** Turns with this outcome, or with a failed check. */
  only?: TurnOutcome | 'checks_failed';
  /** Turns of this recorded session. */
  session_id?: string;
}

/** Queries for replays, part of the read models port. */
export interface ReplayQueries {
  /** By id alone, including erased replays; the caller checks the account. */
  findReplay(replayId: string): Promise<ReplayRow | undefined>;
  /** Undefined after an erasure. */
  findReplaySettings(replayId: string): Promise<ReplaySettingsRow | undefined>;
  /** Ids of replays that have not ended, oldest first; optionally of one account. */
  listRunningReplays(limit: number, accountId?: string): Promise<string[]>;
  /** Newest first. Excludes erased replays. */
  listReplays(accountId: string, page: Page): Promise<PageOf<ReplayRow>>;
  findReplaySession(replayId: string, sessionId: string): Promise<ReplaySessionRow | undefined>;
  /** Ordered by the ids of the recorded sessions. */
  listReplaySessions(replayId: string, page: Page): Promise<PageOf<ReplaySessionRow>>;
  /** Compared turns by session and number. `after` is an entry. */
  listReplayTurns(replayId: string, page: Page & ReplayTurnFilter): Promise<PageOf<ReplayTurnRow>>;
}

/** The index of tables.ts that has only the turns of the list. */
const turnsOf = (only: ReplayTurnFilter['only']): string => {
  if (only === undefined) return '{replay_turns}';
  return `{replay_turns INDEXED BY replay_turns_${only === 'checks_failed' ? 2 : 1}}`;
};

type Condition = [condition: string, ...parameters: string[]];

/** The SQL conditions of a filter of turns, with their parameters. */
function turnConditions({ only, session_id }: ReplayTurnFilter): Condition[] {
  const conditions: Condition[] = [];
  if (session_id !== undefined)
    conditions.push(['entry BETWEEN ? AND ?', replayEntry(session_id, 0), `${session_id}.:`]);
  if (only === 'checks_failed') conditions.push(['failed_checks > 0']);
  else if (only !== undefined) conditions.push(['outcome = ?', only]);
  return conditions;
}

export function createReplayQueries(database: SqlDatabase): ReplayQueries {
  const { query, find, page } = database;
  const isOfReplay = (table: 'replay_settings' | 'replay_sessions' | 'replay_turns'): string =>
    `replay_id = ${shownOwner(database, table)}`;
  const running = query<{ replay_id: string }>(
    "SELECT replay_id FROM {replays} WHERE status = 'running' AND account_id = coalesce(?, account_id) ORDER BY replay_id LIMIT ?",
  );
  const replays = page({
    table: 'replays',
    key: 'replay_id',
    where: "account_id = ? AND status <> 'erased'",
    descending: true,
  });
  const ofReplay = isOfReplay('replay_sessions');
  const sessions = page({ table: 'replay_sessions', key: 'session_id', where: ofReplay });
  return {
    findReplay: find('replays', 'WHERE replay_id = ?'),
    findReplaySettings: find('replay_settings', `WHERE ${isOfReplay('replay_settings')}`),
    listRunningReplays: async (limit, accountId) =>
      (await running(accountId ?? null, limit)).map(({ replay_id }) => replay_id),
    listReplays: (accountId, bounds) => replays([accountId], bounds),
    findReplaySession: find('replay_sessions', `WHERE ${ofReplay} AND session_id = ?`),
    listReplaySessions: (replayId, bounds) => sessions([replayId], bounds),
    listReplayTurns: (replayId, bounds) => {
      const conditions: Condition[] = [
        [isOfReplay('replay_turns'), replayId],
        ...turnConditions(bounds),
      ];
      const where = conditions.map(([condition]) => condition).join(' AND ');
      const parameters = conditions.flatMap(([, ...values]) => values);
      const from = turnsOf(bounds.only);
      return page({ table: 'replay_turns', from, key: 'entry', where })(parameters, bounds);
    },
  };
}
