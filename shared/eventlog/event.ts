import type { Static } from 'typebox';
import { Type } from '../domain/jsonSchema.ts';
import type { Position } from '../ports/eventStore.ts';
import { Instant } from '../domain/schema.ts';
import type { TextsToEncrypt } from './encryption/protectedText.ts';

/** The metadata of every event. */
export const EventMetadata = Type.Object(
  {
    account_id: Type.String(),
    key_id: Type.String({
      description: 'Who: the API key, or `operator` for a command line, or `system` for recovery',
    }),
    request_id: Type.String({
      description: 'Correlation: the X-Request-Id of the request that led here',
    }),
    causation_id: Type.String({
      description: 'The event that caused this one, or the request when none did',
    }),
    recorded_at: Instant,
    prev_hash: Type.String({
      description: 'The hash of the previous event of the stream; 64 zeros for the first',
    }),
    hash: Type.String({
      description: 'sha256(prev_hash ‖ JCS(event without prev_hash and hash)) in hex',
    }),
  },
  { title: 'EventMetadata', description: 'What is recorded beside the data of every event' },
);
export type EventMetadata = Static<typeof EventMetadata>;

/** An event that a decider decided, with its id, before it is appended. */
export interface NewEvent {
  id: string;
  type: string;
  data: object;
  /** Texts that the data replaces by commitments. */
  toClose?: TextsToEncrypt;
}

/** A decoded event of the log. */
export interface RecordedEvent {
  id: string;
  stream: string;
  revision: number;
  position: Position;
  type: string;
  data: unknown;
  metadata: EventMetadata;
}
