import { session, type SessionCommand, type SessionState } from '../../domain/session/decider.ts';
import { isTurnlogError, TurnlogError } from '../../errors.ts';
import { appendEvents, headOf, type Authorship, type StreamHead } from '../../eventlog/append.ts';
import { createConflictLimit, type ConflictLimit } from '../../eventlog/conflictLimit.ts';
import type { NewEvent } from '../../eventlog/event.ts';
import { asDamage, readPage } from '../../eventlog/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/wholeStream.ts';
import { pauseFor } from '../../pause.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { Actor, CommandContext } from '../context.ts';
import type { OpenRun, RunContext } from './context.ts';

export interface SessionTarget {
  session_id: string;
  state: SessionState;
  head: StreamHead;
}

/** What was decided, with ids and time: however often it is appended, it is the same. */
interface Facts {
  events: NewEvent[];
  authorship: Authorship;
}

type Deciding = Pick<CommandContext, 'ids' | 'clock'>;

function decideFacts(
  { ids, clock }: Deciding,
  author: Actor & { causation_id: string },
  state: SessionState,
  command: SessionCommand,
): Facts {
  const { account_id, key_id, request_id, causation_id } = author;
  return {
    events: session.decide(command, state).map((event) => ({ id: ids.uuid(), ...event })),
    authorship: { account_id, key_id, request_id, causation_id, recorded_at: isoTime(clock.now()) },
  };
}

/** Decides and appends at the head that was read. Errors: Rejection, and those of EventStore.append. */
export async function record(
  context: Pick<CommandContext, 'store' | 'ids' | 'clock'>,
  author: Actor & { causation_id: string },
  target: SessionTarget,
  command: SessionCommand,
): Promise<{ head: StreamHead; position: Position; lastEventId: string }> {
  const { events, authorship } = decideFacts(context, author, target.state, command);
  const appended = await appendEvents(
    context.store,
    { stream: sessionStream(target.session_id), head: target.head },
    events,
    authorship,
  );
  return { ...appended, lastEventId: events.at(-1)!.id };
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
/** A client waits for what this records; longer than this it would rather know. */
const LIMIT_MS = 10_000;
/** What may stand after a run's head beside its own events is the end of its turn, and what others did after that. */
const NEWS_PAGE = 100;

const turnInterrupted = (cause: unknown): TurnlogError =>
  new TurnlogError(
    'turn_interrupted',
    'The turn was interrupted before its end could be recorded. Try again.',
    {
      retriable: true,
      retryAfterSeconds: 1,
      cause,
    },
  );

const ENDS: readonly string[] = [
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
];

/** True for an event after which a turn is over: its end, or whatever belongs to a later one. */
const endsTurn = ({ event: { type, data } }: KnownEvent, turn: number): boolean =>
  'turn' in data && (data.turn > turn || (data.turn === turn && ENDS.includes(type)));

/**
 * Looks at what stands where an append of the run met a conflict, and moves the run's head there, but never into
 * a later turn. Resolves with the position of the facts where an append that seemed to fail had written them;
 * undefined where the turn is still open without them.
 * Errors: `turn_interrupted` when somebody else has ended the turn, after the facts or without them,
 * `stream_damaged`, `store_unavailable`.
 */
async function afterConflict(
  context: RunContext,
  run: OpenRun,
  { events }: Facts,
  conflict: unknown,
): Promise<Position | undefined> {
  const page = { direction: 'forwards', from: run.head.revision + 1, limit: NEWS_PAGE } as const;
  const news = await readPage(context, sessionStream(run.session_id), page);
  const own = news.find(({ recorded }) => events.some(({ id }) => id === recorded.id));
  const end = news.find((known) => endsTurn(known, run.turn));
  if (end !== own && end !== undefined) throw turnInterrupted(conflict);
  const last = end ?? news.at(-1);
  if (last) run.head = headOf(last.recorded);
  return own?.recorded.position;
}

/** Undefined after a conflict that leaves the turn open without the facts. */
async function appendOnce(
  context: RunContext,
  run: OpenRun,
  facts: Facts,
  conflicts: ConflictLimit,
): Promise<Position | undefined> {
  const { revision } = run.head;
  const target = { stream: sessionStream(run.session_id), head: run.head };
  try {
    const { head, position } = await appendEvents(
      context.store,
      target,
      facts.events,
      facts.authorship,
    );
    run.head = head;
    return position;
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
    const found = await afterConflict(context, run, facts, error);
    if (found === undefined) await conflicts.lost(revision);
    return found;
  }
}

/**
 * Records a fact of a run, once, and moves the run's head. While the store is away it tries again for
 * `patienceMs`; an append whose outcome stayed unknown may have been written, which the next try finds. Where
 * others write to the session it tries for some seconds in any case.
 * Errors: `turn_interrupted`, `stream_damaged`, and those of EventStore.append except for `stream_conflict`.
 */
export async function recordInRun(
  context: RunContext,
  run: OpenRun,
  command: SessionCommand,
  patienceMs = 0,
): Promise<Position> {
  const facts = decideFacts(
    context,
    { ...run.actor, causation_id: run.causation_id },
    run.state,
    command,
  );
  const began = performance.now();
  const conflicts = createConflictLimit(context, sessionStream(run.session_id), {
    until: began + LIMIT_MS,
  });
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      const position = await appendOnce(context, run, facts, conflicts);
      if (position !== undefined) return position;
    } catch (error) {
      if (
        !isTurnlogError(error, 'store_unavailable') ||
        performance.now() + pause > began + patienceMs
      )
        throw error;
      context.logger.warn(
        { err: error, session_id: run.session_id, turn: run.turn },
        'a fact of a turn could not be recorded yet',
      );
      await pauseFor(pause);
    }
  }
}

/**
 * Records how a turn ended; the answer is worth waiting for some seconds. A turn that may stay open is noted in
 * `leftOpen`, to be closed as soon as the store is back.
 * Errors: those of recordInRun.
 */
export async function recordEnd(
  context: RunContext,
  run: OpenRun,
  command: SessionCommand,
): Promise<Position> {
  try {
    return await recordInRun(context, run, command, LIMIT_MS);
  } catch (error) {
    if (isTurnlogError(error, 'stream_damaged'))
      throw await asDamage(context, sessionStream(run.session_id), error, '/session_id');
    if (!isTurnlogError(error, 'turn_interrupted'))
      context.leftOpen.add(run.session_id, run.head.revision + 1);
    throw error;
  }
}
