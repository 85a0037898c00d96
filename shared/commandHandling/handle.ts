import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type ConflictLimitOptions } from '../eventlog/conflictLimit.ts';
import type { Actor, CommandContext } from './context.ts';
import { authorOf, prepareEvents, type Author } from './prepareEvents.ts';
import type { LoadedStream, TargetStream } from './targetStream.ts';
import { appendEvents, type AppendedBatch } from '../eventlog/append.ts';

export type HandleContext = Pick<
  CommandContext,
  'store' | 'damaged' | 'clock' | 'ids' | 'reserveRead'
>;

type MaybePromise<Value> = Value | Promise<Value>;

/** A command and its author. */
export interface AuthoredCommand<Command> {
  author: Author;
  command: Command;
}

/** The stream as last read, and the events appended to it, if any were decided. */
export interface HandleResult<Found> {
  loaded: Found;
  appended: AppendedBatch | undefined;
}

/**
 * Load → decide → append at the revision read; on a conflict, again from the start. The command may
 * depend on the loaded state; undefined decides nothing. Nothing slow belongs in this loop, above
 * all no model call. The memory of a request is reserved as long as it holds what it has loaded.
 * Errors: Rejection, `stream_damaged`, the error of `limit` under constant conflicts (by default
 * `store_unavailable`), the abort reason, those of EventStore.append except `stream_conflict`, and
 * what `reserveRead` throws.
 */
export async function handleLoaded<
  Command,
  State,
  Event extends DomainEvent,
  Found extends LoadedStream<State>,
>(
  context: HandleContext,
  { stream, decider, load, preloaded }: TargetStream<Command, State, Event, Found>,
  commandFor: (loaded: Found) => MaybePromise<AuthoredCommand<Command> | undefined>,
  limit: ConflictLimitOptions = {},
): Promise<HandleResult<Found>> {
  const conflicts = createConflictLimit(context, stream, limit);
  const source = { ...context, waitLimits: limit };

  /** After a conflict, resolves with the revision that was loaded. */
  async function attempt(loaded: Found): Promise<HandleResult<Found> | number> {
    limit.signal?.throwIfAborted();
    const authored = await commandFor(loaded);
    const events = authored ? decider.decide(authored.command, loaded.state) : [];
    if (!authored || events.length === 0) return { loaded, appended: undefined };
    try {
      const prepared = await prepareEvents(context, authored.author, loaded.head, events);
      const target = { stream, head: loaded.head };
      return { loaded, appended: await appendEvents(context.store, target, prepared) };
    } catch (error) {
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      return loaded.head.revision;
    }
  }

  let result = preloaded && (await attempt(preloaded));
  while (result === undefined || typeof result === 'number') {
    if (result !== undefined) await conflicts.recordConflict(result);
    result = await withReadMemory(source, async () => attempt(await load(source)));
  }
  return result;
}

/**
 * Checks `If-Match`: the stream must be at one of the expected revisions, if any are given. `what` is
 * the kind of the object, for the message. Throws `precondition_failed`.
 */
export function requireRevision(
  expected: readonly number[] | undefined,
  { revision }: { revision: number },
  what: 'agent' | 'session' | 'webhook',
): void {
  if (!expected || expected.includes(revision)) return;
  throw new TurnlogError(
    'precondition_failed',
    `The ${what} is at revision ${revision}, which If-Match does not name. Send the ETag as it was answered, with its quotes; if the ${what} has changed, read it again first.`,
  );
}

/**
 * Handles one command that is not a run's. (The shape is Emmett's
 * `commandHandling/handleCommand.ts`.) Undefined if no event was decided. Errors: those of
 * handleLoaded.
 */
export async function handle<Command, State, Event extends DomainEvent>(
  context: HandleContext,
  actor: Actor,
  target: TargetStream<Command, State, Event>,
  command: Command,
): Promise<AppendedBatch | undefined> {
  const authored = { author: authorOf(actor), command };
  return (await handleLoaded(context, target, () => authored)).appended;
}
