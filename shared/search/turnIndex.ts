/** What the read models' port says of finding sessions by words. */
import type { Position } from '../ports/eventStore.ts';
import type { SessionFilter } from '../sessions/sessionFilter.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';

/** A search for sessions of which one turn has all of the words. */
export type WordSearch = SessionFilter & { words: readonly string[] };

/** A session as a list has it; where words were sought, with the first turns that have them. */
export type ListedSession = SessionRow & { matches?: number[] };

/** How far the index of words is. */
export interface IndexProgress {
  /** Of the read models: each has an index of its own, which is empty at first. */
  generation: number;
  /** The end of the last turn that is shown; null before there is one. */
  ended: Position | null;
  /** Turns that ended up to here are found; null where none was indexed. */
  indexed: Position | null;
}

/** A turn that has ended, with its texts as its row has them. */
export type EndedTurn = Pick<
  TurnRow,
  'session_id' | 'turn' | 'input' | 'output' | 'end_position' | 'revision'
> &
  Pick<SessionRow, 'account_id'>;

/** What a turn is found by; none where it is not to be found. */
export interface TurnWords extends EndedTurn {
  /** Tokens, each once. */
  tokens: readonly string[];
}

/** Of what erasures left in the index: whether a piece was taken out, the first one of a round, or the last one of all. */
export type Forgotten = 'nothing' | 'begun' | 'some' | 'all';

/** The projector's half of the index of words. */
export interface TurnIndex {
  /**
   * The turns that ended after those that are indexed, in that order, within the bounds of
   * LIMITS.search; one at least, where there is one. Errors: `store_unavailable`.
   */
  unindexed(): Promise<EndedTurn[]>;
  /**
   * Indexes turns that `unindexed` gave, in one transaction, and goes on after the last of them; one
   * whose rows were erased meanwhile is passed over. Errors: `store_unavailable`.
   */
  index(turns: readonly TurnWords[]): Promise<void>;
  /**
   * Takes a piece of the words of erased turns, which nothing finds any more, out of the index's file,
   * and with the last one what its write-ahead file has of them. A round takes out what was erased
   * before it, and writes the whole index anew: without `begin` none is begun. Absent where the database
   * clears what it can by itself. Errors: `store_unavailable`.
   */
  forget?(begin: boolean): Promise<Forgotten>;
}
