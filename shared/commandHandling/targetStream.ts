import type { Decider } from '../domain/decider.ts';
import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { headOf, NO_STREAM, type StreamHead } from '../eventlog/append.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { isFull } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';

/** The state of a stream as read, and the head that the next event follows. */
export interface LoadedStream<State> {
  state: State;
  head: StreamHead;
}

/** A stream that commands are sent to: its decider, and how it is loaded. */
export interface TargetStream<
  Command,
  State,
  Event,
  Found extends LoadedStream<State> = LoadedStream<State>,
> {
  stream: string;
  decider: Decider<Command, State, Event>;
  load: (source: StreamSource) => Promise<Found>;
  /** A state read before, for the first attempt. */
  preloaded?: Found | undefined;
}

const PAGE = 500;

async function loadAll<State, Event extends DomainEvent>(
  source: StreamSource,
  stream: string,
  { initialState, evolve }: Pick<Decider<never, State, Event>, 'initialState' | 'evolve'>,
): Promise<LoadedStream<State>> {
  let state = initialState;
  let head = NO_STREAM;
  for (;;) {
    const from = head.revision + 1;
    const bounds = { limit: PAGE, maxBytes: LIMITS.store.pageBytes };
    const page = await readPage(source, stream, { direction: 'forwards', from, ...bounds });
    for (const { recorded, event } of page) {
      state = evolve(state, event as Event);
      head = headOf(recorded, head);
    }
    const stored = page.map((event) => event.stored);
    if (isFull({ events: stored, ...bounds })) continue;
    source.damaged.clear(stream, { from: 0, to: head.revision });
    return { state, head };
  }
}

/**
 * A stream of any length whose state is in its last event: the cost of a command does not grow with
 * the stream. A stream that ends with an event of which `holdsState` is false is read from its
 * beginning.
 */
export const lastEventTarget = <Command, State, Event extends DomainEvent>(
  stream: string,
  decider: Decider<Command, State, Event>,
  holdsState: (event: Event) => boolean = () => true,
): TargetStream<Command, State, Event> => ({
  stream,
  decider,
  async load(source) {
    const [last] = await readPage(source, stream, { direction: 'backwards', limit: 1 });
    if (!last) return { state: decider.initialState, head: NO_STREAM };
    const event = last.event as Event;
    if (!holdsState(event)) return loadAll(source, stream, decider);
    return { state: decider.evolve(decider.initialState, event), head: headOf(last.recorded) };
  },
});

/** A short stream, read from its beginning. */
export const wholeStreamTarget = <Command, State, Event extends DomainEvent>(
  stream: string,
  decider: Decider<Command, State, Event>,
): TargetStream<Command, State, Event> => ({
  stream,
  decider,
  load: (source) => withReadMemory(source, () => loadAll(source, stream, decider)),
});

/** A stream with a new id: there is nothing to read. */
export const newStreamTarget = <Command, State, Event extends DomainEvent>(
  stream: string,
  decider: Decider<Command, State, Event>,
): TargetStream<Command, State, Event> => ({
  ...wholeStreamTarget(stream, decider),
  preloaded: { state: decider.initialState, head: NO_STREAM },
});
