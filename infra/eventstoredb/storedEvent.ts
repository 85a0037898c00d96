import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { eventPosition } from './positions.ts';

type Recorded = ReadResp.ReadEvent.RecordedEvent;

const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** The event as the port has it; undefined for one that can't be ours: a system event, a link, or one whose content is not JSON. */
export function toStoredEvent(event: Recorded): StoredEvent | undefined {
  const attributes = event.getMetadataMap();
  const type = attributes.get('type') ?? '';
  if (type.startsWith('$') || attributes.get('content-type') !== 'application/json') return undefined;
  return {
    id: event.getId()?.getString() ?? '',
    stream: text(event.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()),
    revision: Number(event.getStreamRevision()),
    position: eventPosition(BigInt(event.getCommitPosition())),
    type,
    data: text(event.getData_asU8()),
    metadata: text(event.getCustomMetadata_asU8()),
  };
}
