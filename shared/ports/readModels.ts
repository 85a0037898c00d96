/** The read models port: what queries ask, what the projector writes. Suite: test/contracts/readModels.ts. */
import type { RowOf } from '../readModels/table.ts';
import type {
  AccountRow,
  AgentRow,
  ApiKeyRow,
  ErasureRow,
  PARKED_STREAMS,
  SessionRow,
  TurnRow,
  WebhookRow,
} from '../readModels/tables.ts';
import type { SessionFilter } from '../sessions/sessionFilter.ts';
import type { Bounds, Page, PageOf } from '../readModels/pageOf.ts';
import type { ReplayReads } from '../replays/replayReads.ts';
import type { UsageReads } from '../usage/usageSums.ts';
import type { ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import type { IndexProgress, ListedSession, TurnIndex } from '../search/turnIndex.ts';
import type { Checkpoint, Position } from './eventStore.ts';

export type { Bounds, Page, PageOf };

/** A stream with an event that could not be applied: later ones are skipped until a rebuild. */
export type ParkedStream = RowOf<typeof PARKED_STREAMS>;

export interface ParkedStreams {
  count: number;
  streams: ParkedStream[];
}

export type OpenTurn = Pick<TurnRow, 'session_id' | 'turn' | 'owner' | 'deadline'> &
  Pick<SessionRow, 'account_id'>;

export interface TranscriptRows {
  session: SessionRow;
  turns: PageOf<TurnRow>;
}

/**
 * All queries reject with `store_unavailable` when the read models can't be reached, or are not
 * caught up for the first time yet.
 */
export interface ReadModels extends ReplayReads, UsageReads {
  /** Without erased ones. */
  listAccounts(): Promise<AccountRow[]>;
  findAccount(accountId: string): Promise<AccountRow | undefined>;
  findApiKey(keyId: string): Promise<ApiKeyRow | undefined>;
  /** The key of that hash; the one of the lowest id, should two accounts have it. */
  findApiKeyByHash(hash: string): Promise<ApiKeyRow | undefined>;
  /** Oldest first. */
  listApiKeys(accountId: string): Promise<ApiKeyRow[]>;
  /** True once any key was ever issued, revoked ones and those of erased accounts included. */
  hasApiKeys(): Promise<boolean>;
  /** By id alone: the caller judges whose it is. Deleted agents are not found, erased ones are. */
  findAgent(agentId: string): Promise<AgentRow | undefined>;
  /** Oldest first, without erased ones; deleted ones where they are asked for. */
  listAgents(accountId: string, page: Page & { deleted?: true }): Promise<PageOf<AgentRow>>;
  /** Changes with the account's agents, and is cheap; tells nothing of others: clients see it. */
  agentListVersion(accountId: string): Promise<string>;
  findSession(sessionId: string): Promise<SessionRow | undefined>;
  /**
   * Newest first unless the oldest are asked for, without erased ones. The signal ends a search for
   * words between two pieces of it, where it has some. Errors: the signal's reason.
   */
  listSessions(
    accountId: string,
    page: Page & SessionFilter,
    signal?: AbortSignal,
  ): Promise<PageOf<ListedSession>>;
  /** It is asked often by each search that waits. */
  indexProgress(): Promise<IndexProgress>;
  /** Turns that have ended and are not indexed yet, at most LIMITS.search.countedTurns. */
  countUnindexed(): Promise<number>;
  /**
   * The account's session and its turns of one moment, oldest first, after turn number `after`. Of
   * another account's none is read: it takes no longer than if there were no such session.
   */
  findTranscript(
    accountId: string,
    sessionId: string,
    page: Bounds & { after?: number },
  ): Promise<TranscriptRows | undefined>;
  /** The sessions that replays made of one, by their ids, without erased ones. */
  listReplaysOf(sessionId: string, page: Page): Promise<PageOf<SessionRow>>;
  /** By id alone, deleted and erased ones too; whose it is, is for the caller to judge. */
  findWebhook(webhookId: string): Promise<WebhookRow | undefined>;
  /** Oldest first, without erased ones; deleted ones where they are asked for. */
  listWebhooks(accountId: string, page: Page & { deleted?: true }): Promise<PageOf<WebhookRow>>;
  /** Those of all accounts that events are sent to, the oldest first. */
  listEnabledWebhooks(limit: number): Promise<WebhookRow[]>;
  /** Streams that were erased, the last of the log first, down to a position. */
  listErasures(page: { downTo: Position | undefined; limit: number }): Promise<ErasureRow[]>;
  /** Turns whose end is not recorded. */
  listOpenTurns(): Promise<OpenTurn[]>;
  /** The first of them in the order of their names, and how many there are. */
  listParkedStreams(limit: number): Promise<ParkedStreams>;
  /** Resolves true once everything up to the position is shown, false after `timeoutMs`. */
  untilShown(position: Position, timeoutMs: number): Promise<boolean>;
  /**
   * Has queries of sessions wait for the position, so that its writer need not; false where that would
   * be in vain. Absent where other processes answer queries.
   */
  showLater?(position: Position): boolean;
  close(): Promise<void>;
}

/** Where a batch leaves a projection: a batch itself is one, once it has a position. */
export interface Reached {
  /** Everything up to here is shown. */
  position: Position;
  /** Where to resume; undefined while no event was applied. */
  checkpoint: Checkpoint | undefined;
}

/** The projector's half. */
export interface ProjectionStore extends TurnIndex {
  /** Where to resume; undefined from the beginning. */
  checkpoint(): Promise<Checkpoint | undefined>;
  /**
   * Applies the events, whose texts stand open, and moves the checkpoint in one transaction, one batch at a time. Events
   * that were applied before change nothing; a stream with an event that can't be applied is
   * parked, which never keeps the others back. Resolves with the streams that this batch parked.
   * Errors: `store_unavailable` (nothing was changed; the same batch may be applied again),
   * `position_invalid` when what was reached can be no position of any log (nothing was changed).
   */
  apply(events: readonly ReadableEvent[], reached: Reached): Promise<ParkedStream[]>;
  close(): Promise<void>;
}

/** How far the active projector is behind the log, as it tells the other processes. */
export interface ProjectorLag {
  /** The events still to apply; null where some of them are not read yet. */
  events: number | null;
  /** The age of the oldest of them, in milliseconds; 0 where there is none. */
  ms: number;
}

/** What the active projector has told last. */
export interface ProjectorBeat {
  lag: ProjectorLag;
  /** How long ago, in milliseconds, by the clock of the read models' server. */
  silent_ms: number;
}

/** The projector's half where several processes may project and one of them is active at a time. */
export interface ActiveProjectionStore extends ProjectionStore {
  /**
   * Tells whoever answers queries that this projector is at work, and how far it is. Waits for the
   * batch at work. Errors: `store_unavailable`.
   */
  beat(lag: ProjectorLag): Promise<void>;
  /** Aborted once this process is not the active projector any more: `apply` changes nothing then. */
  lost: AbortSignal;
  /**
   * Says that the read models have caught up, and lets go of what they replaced. May be said again.
   * Errors: `store_unavailable`.
   */
  complete(): Promise<void>;
  /**
   * The position of the checkpoint that was given up; undefined where the read models can be
   * trusted. Errors: `store_unavailable`.
   */
  refused(): Promise<Position | undefined>;
  /**
   * Gives the checkpoint up, because the log was restored, and notes so for whoever projects next:
   * the read models answer on, and are to be rebuilt before anything is applied again.
   * Errors: `store_unavailable`.
   */
  giveUp(checkpoint: Checkpoint): Promise<void>;
  /**
   * Notes for the other processes why the log is not followed; undefined once it is again.
   * Errors: `store_unavailable`.
   */
  noteLogChanged(reason: string | undefined): Promise<void>;
}

/** A generation of the read models that is built beside the one that answers queries. */
export interface RebuildStore extends ProjectionStore {
  /** Empties the generation, whose checkpoint the log does not know. Errors: `store_unavailable`. */
  startOver(): Promise<void>;
  /**
   * Aborted when this process can no longer write the generation; the next rebuild goes on. Absent
   * where that can't happen.
   */
  lost?: AbortSignal;
  /**
   * Makes the generation the one that answers queries, and closes it. Where the other one has
   * meanwhile come further it is held there, and `reach` is called with its position: it applies
   * the events up to there, as far as the log has them.
   */
  publish(reach: (position: Position) => Promise<void>): Promise<void>;
}
