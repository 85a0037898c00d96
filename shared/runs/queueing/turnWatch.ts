/** How one process tells the others that something happened to a session's turn. */

import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { ALL, type Broadcast } from '../../ports/broadcast.ts';

/** No other message begins so. */
const PREFIX = 'turn ';
/** What finds too many messages on their way waits so long. */
const RETRY_MS = 50;

/** Who hears signals. What it hears may be late, repeated or untrue: it looks at the log itself. */
export interface TurnListener {
  /** Somebody says that a turn of the session has ended. */
  onTurnEnded(sessionId: string): void;
  /** Signals may have been lost up to now. */
  onSignalsLost(): void;
}

export interface TurnSignals {
  /** Tells the other processes, soon, or never where too many are still to be told. */
  send(sessionId: string): void;
  /** From now on the listener hears what others tell. To be called once. */
  listen(listener: TurnListener): void;
  /** Whether signals come through now, as far as is known. */
  connected(): boolean;
}

/**
 * Signals over a broadcast. What is told while it is not connected waits, up to a bound; what is
 * beyond it, or on its way when the connection breaks, is lost.
 */
export function createTurnSignals(broadcast: Broadcast): TurnSignals {
  /** Sessions that are still to be told, each once. */
  const pending = new Set<string>();
  let again: NodeJS.Timeout | undefined;

  function tellPending(): void {
    clearTimeout(again);
    for (const sessionId of pending) {
      if (!broadcast.send(ALL, `${PREFIX}${sessionId}`)) break;
      pending.delete(sessionId);
    }
    if (pending.size > 0 && broadcast.connected())
      again = setTimeout(tellPending, RETRY_MS).unref();
  }

  return {
    send(sessionId) {
      if (pending.size >= LIMITS.turn.signals) return;
      pending.add(sessionId);
      tellPending();
    },
    listen({ onTurnEnded, onSignalsLost }) {
      const hear = (message: string): void => {
        if (message.startsWith(PREFIX)) onTurnEnded(message.slice(PREFIX.length));
      };
      broadcast.listen(hear, () => {
        onSignalsLost();
        tellPending();
      });
    },
    connected: broadcast.connected,
  };
}

/** How a turn ended, as far as it matters to who waits for that. */
export type TurnEndKind = 'ended' | 'cancelled' | 'erased';

/** What a run answers whose turn was ended by somebody else. */
export function turnEndedError(end: TurnEndKind, cause?: unknown): TurnlogError {
  switch (end) {
    case 'erased':
      return sessionErasedError(cause);
    case 'cancelled':
      // Without a time to wait: a client that heeds it would run again what was to be stopped.
      return new TurnlogError('turn_interrupted', 'The turn was cancelled.', { cause });
    case 'ended':
      return new TurnlogError(
        'turn_interrupted',
        'The turn was interrupted before its end could be recorded. Try again.',
        { retriable: true, retryAfterSeconds: 1, cause },
      );
    default:
      return end satisfies never;
  }
}

/** What an event of a session says of a turn's end, or of a later turn. */
interface TurnEndSignal {
  /** No turn up to this one is open after it. */
  turn: number;
  kind: TurnEndKind;
}

/** As much as is read of the data of an event; whoever can write the log may have put in anything. */
interface EventFields {
  turn?: unknown;
  reason?: unknown;
}

/** What a stored event of a session says of the turns before it; undefined where it ends none. */
export function turnEndSignal({
  type,
  data,
}: Pick<StoredEvent, 'type' | 'data'>): TurnEndSignal | undefined {
  if (type === 'session.erased.v1') return { turn: Infinity, kind: 'erased' };
  const isEnd = /^session\.turn_(completed|failed|interrupted)\./.test(type);
  if (!isEnd && !type.startsWith('session.turn_started.')) return undefined;
  try {
    const { turn, reason } = JSON.parse(data) as EventFields;
    if (typeof turn !== 'number') return undefined;
    return isEnd
      ? { turn, kind: reason === 'cancelled' ? 'cancelled' : 'ended' }
      : { turn: turn - 1, kind: 'ended' };
  } catch {
    return undefined;
  }
}

/** How often the log is asked about a turn whose client waits, in milliseconds. */
const CLIENT_POLL_MS = 500;
/** The same about a turn that this process runs, which others may cancel; and while they tell. */
const RUN_POLL_MS = 600;
const SIGNALLED_RUN_POLL_MS = 3_000;
/** Two are what ends a turn with its session; a few are what a run records meanwhile. */
const NEWS_PAGE = 8;

export interface TurnRef {
  session_id: string;
  turn: number;
}

/** A turn whose end somebody waits for: a client, or the run that works on it. */
export interface WatchedTurn extends TurnRef {
  by: 'client' | 'run';
  /** The turn is known to be open at this revision of its stream. */
  revision: number;
  /** Called once, where it was not given up before. */
  onEnd: (end: TurnEndKind) => void;
}

/**
 * Tells of the ends of turns, whichever process records them. What the own process records it is
 * told; what others do it sees in the log, where it looks as soon as they tell that there is
 * something, and now and then in any case.
 */
export interface TurnWatch {
  /** Returns what gives the watch up. */
  subscribe(turn: WatchedTurn): () => void;
  /** This process has seen the turn end. */
  notifyEnded(turn: TurnRef, end: TurnEndKind): void;
  /** Tells the other processes that a turn of the session has ended, where they can be told. */
  notifyOthers(sessionId: string): void;
  /** Begins to look at what is due. To be called several times a second. Never throws. */
  pollDue(): void;
  /** Resolves when no such look is at work. */
  whenIdle(): Promise<void>;
}

/** What a watch is made of. */
export interface TurnWatchOptions {
  store: Pick<EventStore, 'readStream'>;
  /** Absent where no other process can write to the log. */
  signals: TurnSignals | undefined;
  /** Whether other processes may write to the log. */
  shared: boolean;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

/** A session with turns that are watched. */
interface Entry {
  session_id: string;
  turns: Set<WatchedTurn>;
  /** Events up to here were looked at. */
  revision: number;
  lookedAt: number;
  /** The look at work, and whether there was a reason for another one meanwhile. */
  looking: Promise<void> | undefined;
  again: boolean;
}

/** A watch over the turns of one process. */
export function createTurnWatch(options: TurnWatchOptions): TurnWatch {
  const { store, signals, shared, now = () => performance.now() } = options;
  const entries = new Map<string, Entry>();
  let round: Promise<void> | undefined;

  function end(entry: Entry, turn: number, how: TurnEndKind): void {
    for (const watched of entry.turns) {
      if (watched.turn > turn) continue;
      leave(entry, watched);
      watched.onEnd(how);
    }
  }

  function leave(entry: Entry, watched: WatchedTurn): void {
    entry.turns.delete(watched);
    if (entry.turns.size === 0 && entries.get(entry.session_id) === entry)
      entries.delete(entry.session_id);
  }

  async function readNews(entry: Entry): Promise<void> {
    const { session_id } = entry;
    do {
      entry.again = false;
      const news = await store.readStream(sessionStream(session_id), {
        direction: 'forwards',
        from: entry.revision + 1,
        limit: NEWS_PAGE,
        maxBytes: LIMITS.store.pageBytes,
      });
      for (const event of news) {
        entry.revision = Math.max(entry.revision, event.revision);
        const sign = turnEndSignal(event);
        if (sign) end(entry, sign.turn, sign.kind);
      }
      if (news.length === NEWS_PAGE) entry.again = true;
    } while (entry.again && entry.turns.size > 0);
  }

  /** A store that is away, or a stream that it can't read, is looked at again later. */
  function look(entry: Entry): Promise<void> {
    entry.again = true;
    entry.looking ??= readNews(entry)
      .catch(() => undefined)
      .finally(() => {
        entry.looking = undefined;
        entry.lookedAt = now();
      });
    return entry.looking;
  }

  const everyMs = ({ turns }: Entry): number => {
    for (const { by } of turns) if (by === 'client') return CLIENT_POLL_MS;
    if (!shared) return Infinity;
    return signals?.connected() === true ? SIGNALLED_RUN_POLL_MS : RUN_POLL_MS;
  };

  /** Each that is due, a few at a time. */
  async function lookRound(): Promise<void> {
    const at = now();
    const due = [...entries.values()].filter((entry) => at - entry.lookedAt >= everyMs(entry));
    const left = due.values();
    const lookAtNext = async (): Promise<void> => {
      for (const entry of left) await look(entry);
    };
    await Promise.all(Array.from({ length: LIMITS.turn.looks }, lookAtNext));
    round = undefined;
  }

  signals?.listen({
    onTurnEnded(sessionId) {
      const entry = entries.get(sessionId);
      if (entry) void look(entry);
    },
    onSignalsLost() {
      for (const entry of entries.values()) entry.lookedAt = -Infinity;
    },
  });

  return {
    subscribe(watched) {
      const { session_id, revision, by } = watched;
      const entry = entries.get(session_id) ?? {
        session_id,
        turns: new Set(),
        revision,
        lookedAt: now(),
        looking: undefined,
        again: false,
      };
      entries.set(session_id, entry);
      entry.revision = Math.min(entry.revision, revision);
      entry.turns.add(watched);
      // What came between its last look at the turn and now was told to nobody.
      if (by === 'client') void look(entry);
      return () => leave(entry, watched);
    },
    notifyEnded({ session_id, turn }, how) {
      const entry = entries.get(session_id);
      if (entry) end(entry, turn, how);
    },
    notifyOthers: (sessionId) => signals?.send(sessionId),
    pollDue() {
      if (entries.size > 0) round ??= lookRound();
    },
    async whenIdle() {
      await round;
    },
  };
}
