import type { Position } from '../ports/eventStore.ts';
import { FEATURE_PUBLIC_EVENTS } from '../features.ts';
import type { Channel, PublicContentOf } from './schema.ts';

/** Every public event type. */
export const publicEventSchemas = FEATURE_PUBLIC_EVENTS;

type Schemas = (typeof publicEventSchemas)[number];
export type PublicContent = PublicContentOf<Schemas>;

/**
 * An event as downstream consumers see it; infra/kafka/producerSession.ts writes it as a
 * CloudEvent.
 */
export interface PublicEvent {
  /** The id of the recorded event. */
  id: string;
  type: Schemas['type'];
  channel: Channel;
  /**
   * The agent id or session id. Events of one key are published in the order of their revisions.
   */
  key: string;
  /** The time of recording: UTC, milliseconds, ISO 8601. */
  time: string;
  data: PublicContent['data'];
  account_id: string;
  /** 0-based index among the events of its key. */
  revision: number;
  /** Its position in the log. */
  position: Position;
  /** The request that led to the event. */
  correlation_id: string;
  /** The event that caused this one, or the request if no event did. */
  causation_id: string;
  /** W3C trace context, level 1. */
  traceparent: string;
  /** Only for events published late, after a restore of the log: the new id of the log. */
  restored?: string;
}
