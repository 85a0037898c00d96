import { EventEmitter, once } from 'node:events';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import type { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';
import type { Interruption } from '../../sessions/turns/projection.ts';
import {
  interruptedTurn,
  isInterruption,
  turnFailureError,
} from '../../sessions/turns/turnFailure.ts';
import { ALL_MEMBERS, type Broadcast } from '../../ports/broadcast.ts';

/** Prefix of turn signals, which no other message has. */
const PREFIX = 'turn ';
/** A request to stop a run: the name of the process that waits, the session and the turn. */
const STOP_REQUEST = /^stop (\S+) (\S+) (\d+)$/;
/** Prefix of the answer, before the session and the turn. */
const STOPPED = 'stopped ';
/** Longest wait for the answer, which a dead process does not send. */
const ANSWER_MS = 1_000;
/** Delay of a retry while too many messages are queued. */
const RETRY_MS = 50;

/** Receives signals. Signals may be late, repeated or wrong, so listeners must read the log. */
export interface TurnListener {
  /** A turn of the session may have ended. */
  onTurnEnded(sessionId: string): void;
  /** Earlier signals may have been lost. */
  onSignalsLost(): void;
  /** Resolves when no run of the turn in this process has tool calls to record. Never rejects. */
  onStopRequested(turn: TurnRef): Promise<void>;
}

export interface TurnSignals {
  /** Signals the other processes soon. The signal is dropped if too many are pending. */
  send(sessionId: string): void;
  /**
   * Requests that another process stops its run of a turn, whose end this process records next.
   * Resolves when the run has recorded its ended tool calls, or after a second without an answer.
   */
  requestStop(owner: string, turn: TurnRef): Promise<void>;
  /** Starts to receive signals. Call once. */
  listen(listener: TurnListener): void;
  /** True if signals currently arrive, as far as this process knows. */
  connected(): boolean;
}

/**
 * Sends signals over a broadcast. While it is disconnected, signals are queued up to a limit.
 * Signals above the limit, or in transit when the connection breaks, are lost.
 */
export function createTurnSignals(broadcast: Broadcast): TurnSignals {
  /** Sessions with a signal still to be sent. */
  const pending = new Set<string>();
  let retry: NodeJS.Timeout | undefined;
  const stopped = new EventEmitter().setMaxListeners(Infinity);

  function sendPending(): void {
    clearTimeout(retry);
    for (const sessionId of pending) {
      if (!broadcast.send(ALL_MEMBERS, `${PREFIX}${sessionId}`)) break;
      pending.delete(sessionId);
    }
    if (pending.size > 0 && broadcast.connected())
      retry = setTimeout(sendPending, RETRY_MS).unref();
  }

  return {
    send(sessionId) {
      if (pending.size >= LIMITS.turn.signals) return;
      pending.add(sessionId);
      sendPending();
    },
    async requestStop(owner, { session_id, turn }) {
      const subject = `${session_id} ${turn}`;
      if (!broadcast.send(owner, `stop ${broadcast.name} ${subject}`)) return;
      const timeout = AbortSignal.timeout(ANSWER_MS);
      await once(stopped, subject, { signal: timeout }).catch(() => undefined);
    },
    listen({ onTurnEnded, onSignalsLost, onStopRequested }) {
      async function stopRun([, from, session_id, turn]: RegExpExecArray): Promise<void> {
        await onStopRequested({ session_id: session_id!, turn: Number(turn) });
        broadcast.send(from!, `${STOPPED}${session_id} ${turn}`);
      }
      const receive = (message: string): void => {
        if (message.startsWith(PREFIX)) onTurnEnded(message.slice(PREFIX.length));
        if (message.startsWith(STOPPED)) stopped.emit(message.slice(STOPPED.length));
        const request = STOP_REQUEST.exec(message);
        if (request) void stopRun(request);
      };
      broadcast.listen(receive, () => {
        onSignalsLost();
        sendPending();
      });
    },
    connected: broadcast.connected,
  };
}

/** How a turn ended: `ended` where the reason is not known. */
export type TurnEndKind = 'ended' | 'erased' | Interruption;

/** The error of a run whose turn was ended from outside. */
export function turnEndedError(end: TurnEndKind, turn?: TurnRef, cause?: unknown): TurnlogError {
  if (end === 'erased') return sessionErasedError(cause);
  // A retry would run again what was cancelled.
  const retry = end === 'cancelled' ? {} : { retriable: true, retryAfterSeconds: 1 };
  return turnFailureError(interruptedTurn(end === 'ended' ? 'crash' : end), turn, {
    ...retry,
    cause,
  });
}

/** The effect of an event of a session on open turns. */
interface TurnEndSignal {
  /** Turns up to this one are no longer open after the event. */
  turn: number;
  kind: TurnEndKind;
}

/** Fields read from the untrusted data of an event. */
interface EventFields {
  turn?: unknown;
  reason?: unknown;
  cause?: unknown;
}

/** Undefined for a stored event that ends no turn. */
export function turnEndSignal({
  type,
  data,
}: Pick<StoredEvent, 'type' | 'data'>): TurnEndSignal | undefined {
  if (type === 'session.erased.v1') return { turn: Infinity, kind: 'erased' };
  const isEnd = /^session\.turn_(completed|failed|interrupted)\./.test(type);
  if (!isEnd && !type.startsWith('session.turn_started.')) return undefined;
  try {
    const { turn, reason, cause = reason } = JSON.parse(data) as EventFields;
    if (typeof turn !== 'number') return undefined;
    return isEnd
      ? { turn, kind: isInterruption(cause) ? cause : 'ended' }
      : { turn: turn - 1, kind: 'ended' };
  } catch {
    return undefined;
  }
}

/** Poll interval for a turn that a client waits for, in milliseconds. */
const CLIENT_POLL_MS = 500;
/**
 * Poll intervals for a turn of this process that other processes may cancel, without and with
 * signals.
 */
const RUN_POLL_MS = 600;
const SIGNALLED_RUN_POLL_MS = 3_000;
/** The end of a turn and of its session are two events, and a run may record a few more. */
const NEWS_PAGE = 8;
/** Time that a cancellation gives a run to record its ended tool calls. */
const STOP_MS = 2_000;
/** Longest wait of a stopped run for the end that another process records. */
const REMOTE_END_MS = 5_000;

/** The result of ending a turn; nothing is appended if it had ended, or its start was not found. */
export interface TurnEnding {
  appended: unknown;
}

/** How a turn is ended from outside. */
interface EndTurnOptions<Ended extends TurnEnding> {
  /** The other process that may run the turn; undefined if there is none. */
  findOwner: () => Promise<string | undefined>;
  recordEnd: () => Promise<Ended>;
}

export interface TurnRef {
  session_id: string;
  turn: number;
}

/** A turn whose end a client or its run waits for. */
export interface WatchedTurn extends TurnRef {
  by: 'client' | 'run';
  /** A revision of the stream at which the turn is open. */
  revision: number;
  /** Called once, unless unsubscribed before. */
  onEnd: (end: TurnEndKind) => void;
  /**
   * Stops a run before `ending` records the end of its turn. Resolves when the run has recorded its
   * ended tool calls. Never rejects.
   */
  onStop?: (ending: Promise<TurnEnding>) => Promise<void>;
}

/**
 * Reports the ends of turns in any process. Those in this process are reported by it. Those in
 * other processes are read from the log, after a signal and at intervals.
 */
export interface TurnWatch {
  /** Returns a function that unsubscribes. */
  subscribe(turn: WatchedTurn): () => void;
  /**
   * Records the end of a turn, if there is one, with `recordEnd`. Its run is stopped first, because
   * it can't record tool calls after the end of its turn. Another process is not waited
   * for longer than a second.
   */
  endTurn<Ended extends TurnEnding>(
    turn: Pick<TurnRef, 'session_id'> & Partial<TurnRef>,
    options: EndTurnOptions<Ended>,
  ): Promise<Ended>;
  /** Reports an end that occurred in this process. */
  notifyEnded(turn: TurnRef, end: TurnEndKind): void;
  /** Signals other processes, if any, that a turn of the session has ended. */
  notifyOthers(sessionId: string): void;
  /** Starts all polls that are due. Call several times a second. Never throws. */
  pollDue(): void;
  /** Resolves when no poll is running. */
  whenIdle(): Promise<void>;
}

interface TurnWatchOptions {
  store: Pick<EventStore, 'readStream'>;
  /** Undefined if no other process can write to the log. */
  signals: TurnSignals | undefined;
  /** True if other processes may write to the log. */
  shared: boolean;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

/** A session with watched turns. */
interface Entry {
  session_id: string;
  turns: Set<WatchedTurn>;
  /** Events up to this revision were read. */
  revision: number;
  polledAt: number;
  /** The running poll, and whether another read must follow it. */
  polling: Promise<void> | undefined;
  again: boolean;
}

export function createTurnWatch(options: TurnWatchOptions): TurnWatch {
  const { store, signals, shared, now = () => performance.now() } = options;
  const entries = new Map<string, Entry>();
  let round: Promise<void> | undefined;

  function end(entry: Entry, turn: number, kind: TurnEndKind): void {
    for (const watched of entry.turns) {
      if (watched.turn > turn) continue;
      leave(entry, watched);
      watched.onEnd(kind);
    }
  }

  function leave(entry: Entry, watched: WatchedTurn): void {
    entry.turns.delete(watched);
    if (entry.turns.size === 0 && entries.get(entry.session_id) === entry)
      entries.delete(entry.session_id);
  }

  async function readEventsSince(entry: Entry): Promise<void> {
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
        const signal = turnEndSignal(event);
        if (signal) end(entry, signal.turn, signal.kind);
      }
      if (news.length === NEWS_PAGE) entry.again = true;
    } while (entry.again && entry.turns.size > 0);
  }

  /** Polls a stream. After an error, it is polled again later. */
  function poll(entry: Entry): Promise<void> {
    entry.again = true;
    entry.polling ??= readEventsSince(entry)
      .catch(() => undefined)
      .finally(() => {
        entry.polling = undefined;
        entry.polledAt = now();
      });
    return entry.polling;
  }

  const pollIntervalMs = ({ turns }: Entry): number => {
    for (const { by } of turns) if (by === 'client') return CLIENT_POLL_MS;
    if (!shared) return Infinity;
    return signals?.connected() === true ? SIGNALLED_RUN_POLL_MS : RUN_POLL_MS;
  };

  /** Polls all sessions that are due, a few at a time. */
  async function pollRound(): Promise<void> {
    const at = now();
    const dueEntries = [...entries.values()].filter(
      (entry) => at - entry.polledAt >= pollIntervalMs(entry),
    );
    const queue = dueEntries.values();
    const pollNext = async (): Promise<void> => {
      for (const entry of queue) await poll(entry);
    };
    await Promise.all(Array.from({ length: LIMITS.turn.looks }, pollNext));
    round = undefined;
  }

  function subscribe(watched: WatchedTurn): () => void {
    const { session_id, revision, by } = watched;
    const entry = entries.get(session_id) ?? {
      session_id,
      turns: new Set(),
      revision,
      polledAt: now(),
      polling: undefined,
      again: false,
    };
    entries.set(session_id, entry);
    entry.revision = Math.min(entry.revision, revision);
    entry.turns.add(watched);
    // The turn may have ended between the client's last read and now.
    if (by === 'client') void poll(entry);
    return () => leave(entry, watched);
  }

  /** The run of a turn in this process. */
  const findRun = ({ session_id, turn }: Partial<TurnRef>): WatchedTurn | undefined =>
    [...(entries.get(session_id!)?.turns ?? [])].find(
      (watched) => watched.onStop && watched.turn === turn,
    );

  /** Resolves when the turn has ended in the log, or without an end after some seconds. */
  async function waitUntilEndRecorded({
    session_id,
    turn,
    revision,
  }: WatchedTurn): Promise<TurnEnding> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const leaveTurn = subscribe({
      session_id,
      turn,
      // Continues after the events that were read already.
      revision: entries.get(session_id)?.revision ?? revision,
      by: 'client',
      onEnd: () => resolve(),
    });
    const appended = (await resolvesWithin(promise, REMOTE_END_MS, { ref: false })) || undefined;
    leaveTurn();
    return { appended };
  }

  signals?.listen({
    onTurnEnded(sessionId) {
      const entry = entries.get(sessionId);
      if (entry) void poll(entry);
    },
    onSignalsLost() {
      for (const entry of entries.values()) entry.polledAt = -Infinity;
    },
    async onStopRequested(turn) {
      const run = findRun(turn);
      await run?.onStop?.(waitUntilEndRecorded(run));
    },
  });

  return {
    subscribe,
    async endTurn(ref, { findOwner, recordEnd }) {
      const { session_id, turn } = ref;
      const run = findRun(ref);
      if (!run?.onStop) {
        const owner = signals?.connected() && turn !== undefined ? await findOwner() : undefined;
        if (owner !== undefined) await signals!.requestStop(owner, { session_id, turn: turn! });
        return recordEnd();
      }
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      const ending = stopped.then(recordEnd);
      await resolvesWithin(run.onStop(ending), STOP_MS);
      resolve();
      return ending;
    },
    notifyEnded({ session_id, turn }, kind) {
      const entry = entries.get(session_id);
      if (entry) end(entry, turn, kind);
    },
    notifyOthers: (sessionId) => signals?.send(sessionId),
    pollDue() {
      round ??= pollRound();
    },
    async whenIdle() {
      await round;
    },
  };
}
