import type { Static } from 'typebox';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import type { HeadProof } from '../../../shared/transparency/proof/sessionProof.ts';
import type { SessionProof } from './schemas.ts';

/** A proof around the events that it proves, which follow as its last member. */
export const presentProof = (
  session_id: string,
  { revision, event_id, leaf, proof, checkpoint }: HeadProof,
): Static<typeof SessionProof> => ({
  session_id,
  revision,
  event_id,
  leaf,
  proof,
  checkpoint,
  events: [],
});

/** An event that shows none of its texts, without its position. */
export const presentCommitted = ({ position: _position, ...event }: RecordedEvent) => event;
