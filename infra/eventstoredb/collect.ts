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
  /** Called with everything that comes. */
  heard: () => void;
}

/**
 * Reads until the server has answered all of a request. Rejects with what ended the call before, or
 * the signal's reason.
 */
export async function collect(
  client: HostClient,
  request: ReadReq,
  { requiresLeader, signal, heard }: CollectOptions,
): Promise<Collected> {
  signal.throwIfAborted();
  const call = await client.read(request, requiresLeader);
  const collected: Collected = { events: [], notFound: false };
  const { promise: answered, resolve, reject } = Promise.withResolvers<void>();
  using _cancelling = addAbortListener(signal, () => {
    reject(signal.reason);
    call.cancel();
  });
  call.on('data', (response) => {
    heard();
    const event = response.getEvent()?.getEvent();
    if (event) collected.events.push(event);
    if (response.hasStreamNotFound()) collected.notFound = true;
  });
  call.on('error', reject);
  call.on('end', resolve);
  await answered;
  return collected;
}
