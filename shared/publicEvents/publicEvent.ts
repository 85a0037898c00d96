import type { Position } from '../ports/eventStore.ts';
import { FEATURE_PUBLIC_EVENTS } from '../features.ts';
import type { Channel, DataOf } from './schema.ts';

/** Every public event type. */
export const publicEventSchemas = FEATURE_PUBLIC_EVENTS;

type Schemas = (typeof publicEventSchemas)[number];
/** Type, channel and data of a public event, as its schema has them. */
export type PublicContent = {
  [Type in Schemas['type']]: {
    type: Type;
    channel: Channel;
    data: DataOf<Extract<Schemas, { type: Type }>>;
  };
}[Schemas['type']];

/** An event as downstream consumers see it; infra/kafka/producerSession.ts writes it as a CloudEvent. */
export interface PublicEvent {
  /** The id of the recorded event. */
  id: string;
  type: Schemas['type'];
  channel: Channel;
  /**
   * The agent id or session id: events of one key are published in the order of their revisions.
   */
  key: string;
  /** UTC, milliseconds, ISO 8601: when it was recorded. */
  time: string;
  data: PublicContent['data'];
  account_id: string;
  /** 0-based place among the events of its key. */
  revision: number;
  /** Position in the log. */
  position: Position;
  /** The request that led here. */
  correlation_id: string;
  /** The event that caused this one, or the request when none did. */
  causation_id: string;
  /** W3C trace context, level 1. */
  traceparent: string;
  /** Published late, after the log was restored: the id that the log has had since. */
  restored?: string;
}
