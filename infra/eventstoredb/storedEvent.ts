import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Recorded } from './collect.ts';
import { eventPosition } from './positions.ts';

const text = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** The event as the port has it. One that others wrote may not be JSON: the decoder sees that. */
export const toStoredEvent = (event: Recorded): StoredEvent => ({
  id: event.getId()?.getString() ?? '',
  stream: text(event.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()),
  revision: Number(event.getStreamRevision()),
  position: eventPosition(BigInt(event.getCommitPosition())),
  type: event.getMetadataMap().get('type') ?? '',
  data: text(event.getData_asU8()),
  metadata: text(event.getCustomMetadata_asU8()),
});

/**
 * True for what can be an event of ours: no system event, no link, and JSON. A follower of the log
 * leaves the others out.
 */
export function canBeOurs(event: Recorded): boolean {
  const attributes = event.getMetadataMap();
  return (
    !(attributes.get('type') ?? '').startsWith('$') &&
    attributes.get('content-type') === 'application/json'
  );
}
