import { LRUCache } from 'lru-cache';
import type { Decider } from '../domain/decider.ts';
import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { headOf, NO_STREAM, type AppendedBatch, type StreamHead } from '../eventlog/append.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import { readEventsSince, readPage } from '../eventlog/reading/readWhole.ts';
import { isFull, type KnownEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';

/** The state of a stream as read, and the head that the next event follows. */
export interface LoadedStream<State> {
  state: State;
  head: StreamHead;
}

/** A stream as read, and where its last event is. */
export interface LoadedLast<State> extends LoadedStream<State> {
  /** Undefined for a stream that does not exist. */
  last: Pick<AppendedBatch, 'position' | 'recorded_at'> | undefined;
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

/** All events of a stream, and the last of them. */
interface WholeStream<State> extends LoadedStream<State> {
  last: KnownEvent | undefined;
}

const PAGE = 500;

async function loadAll<State, Event extends DomainEvent>(
  source: StreamSource,
  stream: string,
  { initialState, evolve }: Pick<Decider<never, State, Event>, 'initialState' | 'evolve'>,
): Promise<WholeStream<State>> {
  let state = initialState;
  let head = NO_STREAM;
  let last: KnownEvent | undefined;
  for (;;) {
    const from = head.revision + 1;
    const bounds = { limit: PAGE, maxBytes: LIMITS.store.pageBytes };
    const page = await readPage(source, stream, { direction: 'forwards', from, ...bounds });
    for (const { recorded, event } of page) {
      state = evolve(state, event as Event);
      head = headOf(recorded, head);
      last = { id: recorded.id, revision: head.revision, hash: head.hash };
    }
    const stored = page.map((event) => event.stored);
    if (isFull({ events: stored, ...bounds })) continue;
    source.damaged.clear(stream, { from: 0, to: head.revision });
    return { state, head, last };
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
): TargetStream<Command, State, Event, LoadedLast<State>> => ({
  stream,
  decider,
  async load(source) {
    const [newest] = await readPage(source, stream, { direction: 'backwards', limit: 1 });
    if (!newest) return { state: decider.initialState, head: NO_STREAM, last: undefined };
    const event = newest.event as Event;
    const { position, metadata } = newest.recorded;
    const last = { position, recorded_at: metadata.recorded_at };
    if (!holdsState(event)) return { ...(await loadAll(source, stream, decider)), last };
    const state = decider.evolve(decider.initialState, event);
    return { state, head: headOf(newest.recorded), last };
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

/** Events that others may append between two commands before the stream is read as a whole again. */
const RECENT = 50;

type Remembered = Pick<WholeStream<unknown>, 'state'> & { last: KnownEvent };

/** The states of streams, as last loaded, by store. */
const remembered = new WeakMap<object, LRUCache<string, Remembered>>();

/** Forgets the state of a stream, whose texts were erased; of all streams without one. */
export function forgetState(store: object, stream?: string): void {
  if (stream === undefined) remembered.delete(store);
  else remembered.get(store)?.delete(stream);
}

/**
 * A stream whose state is remembered: of a stream that was loaded before, only newer events are read,
 * so the cost of a command does not grow with the stream. `sizeOf` counts the parts of a state, of
 * which `maxSize` are remembered in all; the streams of a store that are remembered share it.
 */
export const rememberedStreamTarget = <Command, State, Event extends DomainEvent>(
  stream: string,
  decider: Decider<Command, State, Event>,
  { sizeOf, maxSize }: { sizeOf: (state: State) => number; maxSize: number },
): TargetStream<Command, State, Event> => {
  /** The state after newer events; undefined if the remembered event is not among the newest. */
  async function loadNewer(
    source: StreamSource,
    { state, last }: Remembered,
  ): Promise<WholeStream<State> | undefined> {
    const newer = await readEventsSince(source, stream, last, RECENT);
    if (!newer) return undefined;
    return newer.events.reduce<WholeStream<State>>(
      (before, { recorded, event }) => {
        const head = headOf(recorded, before.head);
        const { revision, hash } = head;
        const after = decider.evolve(before.state, event as Event);
        return { state: after, head, last: { id: recorded.id, revision, hash } };
      },
      // The key of its texts is looked up: it may have been destroyed meanwhile.
      { state: state as State, head: { revision: last.revision, hash: last.hash }, last },
    );
  }

  return {
    stream,
    decider,
    load: (source) =>
      withReadMemory(source, async () => {
        const states =
          remembered.get(source.store) ?? new LRUCache<string, Remembered>({ maxSize });
        remembered.set(source.store, states);
        // Reading all of a damaged stream tells whether it was repaired.
        const before = source.damaged.has(stream) ? undefined : states.get(stream);
        const newer = before && (await loadNewer(source, before));
        const loaded = newer ?? (await loadAll(source, stream, decider));
        const { state, last } = loaded;
        if (last) states.set(stream, { state, last }, { size: sizeOf(state) });
        return loaded;
      }),
  };
};

/** A stream with a new id: there is nothing to read. */
export const newStreamTarget = <Command, State, Event extends DomainEvent>(
  stream: string,
  decider: Decider<Command, State, Event>,
): TargetStream<Command, State, Event> => ({
  ...wholeStreamTarget(stream, decider),
  preloaded: { state: decider.initialState, head: NO_STREAM },
});
