import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type ConflictLimitOptions } from '../eventlog/conflictLimit.ts';
import type { Actor, CommandContext } from './context.ts';
import { authorOf, prepareEvents, type Author } from './prepareEvents.ts';
import type { LoadedStream, TargetStream } from './targetStream.ts';
import { appendEvents, type AppendedBatch } from '../eventlog/append.ts';

export type HandleContext = Pick<CommandContext, 'store' | 'damaged' | 'clock' | 'ids'>;

/** A command, and who sends it. */
export interface AuthoredCommand<Command> {
  author: Author;
  command: Command;
}

/**
 * What a stream was when it was last read, and what was appended to it, if anything was decided.
 */
export interface HandleResult<Found> {
  loaded: Found;
  appended: AppendedBatch | undefined;
}

/**
 * Load → decide → append at the revision read; where another writer came in between, once more from
 * the beginning. What is ordered may depend on what was found; undefined orders nothing. Whatever
 * takes long, a model call above all, has no place in here.
 * Errors: Rejection, `stream_damaged` (noted), what `limit` ends with where others write without a
 * pause (by default `store_unavailable`), the reason of its signal, and those of EventStore.append
 * except for `stream_conflict`.
 */
export async function handleLoaded<
  Command,
  State,
  Event extends DomainEvent,
  Found extends LoadedStream<State>,
>(
  context: HandleContext,
  { stream, decider, load, preloaded }: TargetStream<Command, State, Event, Found>,
  orderFor: (found: Found) => AuthoredCommand<Command> | undefined,
  limit: ConflictLimitOptions = {},
): Promise<HandleResult<Found>> {
  const conflicts = createConflictLimit(context, stream, limit);
  for (let found = preloaded ?? (await load(context)); ; found = await load(context)) {
    limit.signal?.throwIfAborted();
    const order = orderFor(found);
    const events = order ? decider.decide(order.command, found.state) : [];
    if (!order || events.length === 0) return { loaded: found, appended: undefined };
    try {
      const facts = await prepareEvents(context, order.author, found.head, events);
      const end = { stream, head: found.head };
      return { loaded: found, appended: await appendEvents(context.store, end, facts) };
    } catch (error) {
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      await conflicts.recordConflict(found.head.revision);
    }
  }
}

/**
 * Handles one command that is not a run's. (The shape is Emmett's
 * `commandHandling/handleCommand.ts`.) Undefined when there was nothing to write. Errors: those of
 * handleFound.
 */
export async function handle<Command, State, Event extends DomainEvent>(
  context: HandleContext,
  actor: Actor,
  target: TargetStream<Command, State, Event>,
  command: Command,
): Promise<AppendedBatch | undefined> {
  const order = { author: authorOf(actor), command };
  return (await handleLoaded(context, target, () => order)).appended;
}
