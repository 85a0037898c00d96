import type { RecordedEvent } from '../eventlog/event.ts';
import type { Table } from '../readModels/table.ts';
import type { Decider } from './decider.ts';
import type { Erasure, EventOf, EventSchema } from './schema.ts';

/** The erasure rules of a kind of stream. */
export interface Erasable<State, Event> extends Pick<
  Decider<never, State, Event>,
  'initialState' | 'evolve'
> {
  /** Throws a Rejection when the state does not allow it. */
  decide: (erasure: Erasure, state: State) => Event[];
  /** The erasure event for a damaged stream, whose state is unknown to a decider. */
  event: (erasure: Erasure) => Event;
}

/** Defines an erasure by the decider of the stream. */
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
  /**
   * The type of the first event, which no later event has. Absent if all events have the same type.
   */
  opening?: Event['type'];
  /** The prefix of the event types; by default, the kind and a dot. */
  typePrefix?: string;
  /**
   * Types that no quota and no full disk refuses: ends of what was begun, and decisions of an
   * operator. Erasures are always recorded and need not be listed.
   */
  alwaysRecorded?: readonly Event['type'][];
  /** Maps an event to changes of the read models. */
  project?: (recorded: RecordedEvent, event: Event) => object[];
  /** The table whose row each event changes first. The row carries the stream's revision. */
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

/**
 * The contributions of a feature, which shared/features.ts collects. Describe each with `satisfies
 * Feature`.
 */
export interface Feature {
  stream?: { kind: string; events: readonly EventSchema[] };
  tables?: Readonly<Record<string, Table>>;
  /** Tables whose rows are deleted with their owner, and the column with the owner's id. */
  owners?: Readonly<Record<string, string>>;
  /** Tables whose indexes also contain texts, and are cleaned after an erasure. */
  indexedTexts?: readonly string[];
  /** Codes of TurnlogError. services/api assigns each an HTTP status. */
  errors?: readonly string[];
  limits?: object;
  /**
   * The public events in the feed, in webhooks and in Kafka: their schemas, and the content of each
   * event of the stream. The events of other streams are internal.
   */
  publicEvents?: {
    schemas: readonly { type: string }[];
    toPublic: (event: never, id: string) => object;
  };
}
