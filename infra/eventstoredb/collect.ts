import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { HostClient } from './clientInternals.ts';

export type Recorded = ReadResp.ReadEvent.RecordedEvent;

export interface Collected {
  events: Recorded[];
  /** The server says that there is no such stream. */
  notFound: boolean;
}

interface CollectOptions {
  requiresLeader: boolean;
  signal: AbortSignal;
  /** Called with everything that comes. */
  heard: () => void;
}

/** Reads until the server has answered all of a request. Rejects with what ended the call before, or the signal's reason. */
export async function collect(
  client: HostClient,
  request: ReadReq,
  { requiresLeader, signal, heard }: CollectOptions,
): Promise<Collected> {
  signal.throwIfAborted();
  const call = await client.read(request, requiresLeader);
  const collected: Collected = { events: [], notFound: false };
  return new Promise((resolve, reject) => {
    function abort(): void {
      reject(signal.reason as Error);
      call.cancel();
    }
    const over = (): void => signal.removeEventListener('abort', abort);
    call.on('data', (response) => {
      heard();
      const event = response.getEvent()?.getEvent();
      if (event) collected.events.push(event);
      if (response.hasStreamNotFound()) collected.notFound = true;
    });
    call.on('error', (error) => {
      over();
      reject(error);
    });
    call.on('end', () => {
      over();
      resolve(collected);
    });
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
