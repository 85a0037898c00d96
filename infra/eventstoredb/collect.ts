import { addAbortListener } from 'node:events';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { HostClient } from './clientInternals.ts';

export type Recorded = ReadResp.ReadEvent.RecordedEvent;

export interface Collected {
  events: Recorded[];
  /** The server says that there is no such stream. */
  notFound: boolean;
}

export interface CollectOptions {
  requiresLeader: boolean;
  signal: AbortSignal;
  /** Enough is read with the event that makes it as much as this: bytes of data and metadata. */
  maxBytes?: number | undefined;
  /** Called with everything that comes. */
  heard: () => void;
}

const bytesIn = (event: Recorded): number =>
  event.getData_asU8().length + event.getCustomMetadata_asU8().length;

/**
 * Reads until the server has answered all of a request, or enough of it. Rejects with what ended the
 * call before, or the signal's reason.
 */
export async function collect(
  client: HostClient,
  request: ReadReq,
  { requiresLeader, maxBytes = Infinity, signal, heard }: CollectOptions,
): Promise<Collected> {
  signal.throwIfAborted();
  const call = await client.read(request, requiresLeader);
  const collected: Collected = { events: [], notFound: false };
  const { promise: answered, resolve, reject } = Promise.withResolvers<void>();
  using _cancelling = addAbortListener(signal, () => {
    reject(signal.reason);
    call.cancel();
  });
  let bytes = 0;
  call.on('data', (response) => {
    heard();
    const event = response.getEvent()?.getEvent();
    if (event && bytes < maxBytes) {
      collected.events.push(event);
      bytes += bytesIn(event);
      if (bytes >= maxBytes) {
        resolve();
        call.cancel();
      }
    }
    if (response.hasStreamNotFound()) collected.notFound = true;
  });
  call.on('error', reject);
  call.on('end', resolve);
  await answered;
  return collected;
}
