import type { RecordedEvent } from '../eventlog/event.ts';
import type { Table } from '../readModels/table.ts';
import type { Decider } from './decider.ts';
import type { Erasure, EventOf, EventSchema } from './schema.ts';

/** How the texts of a stream are erased. */
export interface Erasable<State, Event> extends Pick<
  Decider<never, State, Event>,
  'initialState' | 'evolve'
> {
  /** Throws a Rejection when the state does not allow it. */
  decide: (erasure: Erasure, state: State) => Event[];
  /** The event for a damaged stream, which no decider can judge. */
  event: (erasure: Erasure) => Event;
}

/** An erasure by a stream's own decider. */
export const erasureOf = <const Command, State, Event, const Erased extends Event>(
  { initialState, evolve, decide }: Decider<Command, State, Event>,
  command: (erasure: Erasure) => Command,
  event: (erasure: Erasure) => Erased,
) => ({
  initialState,
  evolve,
  decide: (erasure: Erasure, state: State): Event[] => decide(command(erasure), state),
  event,
});

interface StreamParts<Kind extends string, Event extends { type: string }> {
  /** The type of the first event, which no later event has. Streams of one type have none. */
  opening?: Event['type'];
  /** What the types of its events begin with; the kind and a dot unless it says so. */
  typePrefix?: string;
  /** What an event changes in the read models. */
  project?: (recorded: RecordedEvent, event: Event) => object[];
  /** The table whose row every event changes first, and which carries the stream's revision. */
  table?: string;
  erasure?: {
    initialState: unknown;
    evolve: (state: never, event: Event) => unknown;
    decide: (erasure: Erasure, state: never) => Event[];
    event: (erasure: Erasure) => { type: `${Kind}.erased.v1` };
  };
}

/** Describes the streams of one kind: their names, their events and what follows from those. */
export const defineStream = <
  const Kind extends string,
  const Schemas extends readonly EventSchema[],
  const Parts extends StreamParts<Kind, EventOf<Schemas[number]>>,
>(
  kind: Kind,
  events: Schemas,
  parts: Parts,
): { kind: Kind; events: Schemas } & Parts => ({ kind, events, ...parts });

/** What a feature brings, for shared/features.ts; it is described with `satisfies Feature`. */
export interface Feature {
  stream?: { kind: string; events: readonly EventSchema[] };
  tables?: Readonly<Record<string, Table>>;
  /** Tables whose rows are removed with their owner, and the column that names it. */
  owners?: Readonly<Record<string, string>>;
  /** Tables whose indexes hold texts too, and are cleared after an erasure. */
  indexedTexts?: readonly string[];
  /** Codes of TurnlogError; services/api says which HTTP status each one has. */
  errors?: readonly string[];
  limits?: object;
  /** Schemas of the events that consumers see: the feed, webhooks and Kafka. */
  publicEvents?: readonly { type: string }[];
}
