import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type LimitOfConflicts } from '../eventlog/conflictLimit.ts';
import type { Actor, CommandContext } from './context.ts';
import { appendFacts, authorOf, factsOf, type Appended, type Author } from './recordEvents.ts';
import type { Loaded, Target } from './targetStream.ts';

export type HandleContext = Pick<CommandContext, 'store' | 'damaged' | 'clock' | 'ids'>;

/** A command, and who sends it. */
export interface Order<Command> {
  author: Author;
  command: Command;
}

/**
 * What a stream was when it was last read, and what was appended to it, if anything was decided.
 */
export interface Handled<Found> {
  found: Found;
  appended: Appended | undefined;
}

/**
 * Load → decide → append at the revision read; where another writer came in between, once more from
 * the beginning. What is ordered may depend on what was found; undefined orders nothing. Whatever
 * takes long, a model call above all, has no place in here.
 * Errors: Rejection, `stream_damaged` (noted), what `limit` ends with where others write without a
 * pause (by default `store_unavailable`), the reason of its signal, and those of EventStore.append
 * except for `stream_conflict`.
 */
export async function handleFound<
  Command,
  State,
  Event extends DomainEvent,
  Found extends Loaded<State>,
>(
  context: HandleContext,
  { stream, decider, load, known }: Target<Command, State, Event, Found>,
  orderFor: (found: Found) => Order<Command> | undefined,
  limit: LimitOfConflicts = {},
): Promise<Handled<Found>> {
  const conflicts = createConflictLimit(context, stream, limit);
  for (let found = known ?? (await load(context)); ; found = await load(context)) {
    limit.signal?.throwIfAborted();
    const order = orderFor(found);
    const events = order ? decider.decide(order.command, found.state) : [];
    if (!order || events.length === 0) return { found, appended: undefined };
    try {
      const facts = await factsOf(context, order.author, found.head, events);
      const end = { stream, head: found.head };
      return { found, appended: await appendFacts(context.store, end, facts) };
    } catch (error) {
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      await conflicts.lost(found.head.revision);
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
  target: Target<Command, State, Event>,
  command: Command,
): Promise<Appended | undefined> {
  const order = { author: authorOf(actor), command };
  return (await handleFound(context, target, () => order)).appended;
}
