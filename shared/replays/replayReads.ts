import type { TurnOutcome } from './events.ts';
import type { ReplayRow, ReplaySessionRow, ReplayTurnRow } from '../readModels/tables.ts';
import type { Page, PageOf } from '../readModels/pageOf.ts';

/** Which turns of a replay are meant, all of it together. */
export interface ReplayTurnFilter {
  /** With this outcome, or with a check that failed. */
  only?: TurnOutcome | 'checks_failed';
  /** A recorded session. */
  session_id?: string;
}

/** What is asked of replays: a part of the read models port. */
export interface ReplayReads {
  /** By id alone, erased ones too; whose it is, is for the caller to judge. */
  findReplay(replayId: string): Promise<ReplayRow | undefined>;
  /** Ids of replays that have not ended, the oldest first; of one account where it is named. */
  listRunningReplays(limit: number, accountId?: string): Promise<string[]>;
  /** Newest first, without erased ones. */
  listReplays(accountId: string, page: Page): Promise<PageOf<ReplayRow>>;
  findReplaySession(replayId: string, sessionId: string): Promise<ReplaySessionRow | undefined>;
  /** By the ids of the recorded sessions. */
  listReplaySessions(replayId: string, page: Page): Promise<PageOf<ReplaySessionRow>>;
  /** Turns that were compared, by session and number; `after` is an entry. */
  listReplayTurns(replayId: string, page: Page & ReplayTurnFilter): Promise<PageOf<ReplayTurnRow>>;
}
