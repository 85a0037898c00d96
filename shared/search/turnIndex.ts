/** The read models port for searches by words. */
import type { Position } from '../ports/eventStore.ts';
import type { SessionFilter } from '../sessions/sessionFilter.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';

/** A search for sessions with a turn that contains all words. */
export type WordSearch = SessionFilter & { words: readonly string[] };

/** A listed session. A search by words adds the first matching turns. */
export type ListedSession = SessionRow & { matches?: number[] };

/** The progress of the word index. */
export interface IndexProgress {
  /** Generation of the read models. Each has its own index, which starts empty. */
  generation: number;
  /** The end of the last visible turn; null before the first. */
  ended: Position | null;
  /** Turns that ended up to this position are indexed; null before the first. */
  indexed: Position | null;
  /** When the first visible turn behind it ended; null if there is none. */
  unindexed_from: string | null;
}

/** An ended turn with its encrypted texts. */
export type EndedTurn = Pick<
  TurnRow,
  'session_id' | 'turn' | 'input' | 'output' | 'end_position' | 'revision'
> &
  Pick<SessionRow, 'account_id'>;

/**
 * A turn that is next in the order of the log. It may have been indexed before its turn came. A turn of an
 * erased session, whose row was not deleted yet, counts as indexed.
 */
export type NextTurn = EndedTurn & { is_indexed: boolean };

/** Some turns of some accounts, in the order of their ids. */
export interface TurnsOfAccounts {
  turns: EndedTurn[];
  /** The last of these accounts; undefined after the last one of all. */
  last: string | undefined;
}

/** A turn with its search tokens. Without tokens, it can't be found. */
export interface TurnWords extends EndedTurn {
  /** Distinct tokens. */
  tokens: readonly string[];
}

/**
 * The progress of removing what erasures left: nothing was removed, the first part of a round, some
 * rows or a further part, or the last part.
 */
export type RemovalProgress = 'nothing' | 'begun' | 'some' | 'all';

/** The projector's part of the word index. */
export interface TurnIndex {
  /**
   * The next turns to index, in order of their end and within LIMITS.search, but at least one if
   * any is left. Errors: `store_unavailable`.
   */
  unindexed(): Promise<NextTurn[]>;
  /**
   * A few turns to index of accounts behind this one in the order of ids, within LIMITS.search, so
   * that no account waits for all turns of others. Errors: `store_unavailable`.
   */
  unindexedOfAccounts(after: string): Promise<TurnsOfAccounts>;
  /**
   * Indexes turns in one transaction. Unless they are out of order, advances the index to the last of
   * them. Skips turns whose rows were erased in the meantime. Errors: `store_unavailable`.
   */
  index(turns: readonly TurnWords[], outOfOrder?: boolean): Promise<void>;
  /**
   * Deletes some of the many rows of an erasure, or when there are none, some words of erased turns from
   * the index file. They can't be found any more, but their bytes remain there. After the last rows, and after
   * the last part of a round, the write-ahead file is cleared, too. A round removes all words deleted before
   * it, and rewrites the whole index. It starts with `begin`, or at once while rows of erased
   * turns wait for one. Absent if the database removes such data itself. Errors: `store_unavailable`.
   */
  forget?(begin: boolean): Promise<RemovalProgress>;
}

/** The most that the clocks of processes differ by. */
const CLOCK_SLACK_MS = 60_000;

/**
 * The earliest time, as `updated_at`, of a session with a turn that is not indexed. `from` is when
 * the first of these turns in the order of the log ended.
 */
export const earliestChange = (from: string): string =>
  new Date(Date.parse(from) - CLOCK_SLACK_MS).toISOString();
