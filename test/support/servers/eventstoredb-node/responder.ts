import type grpc from '@grpc/grpc-js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';

export interface Responder {
  /**
   * Writes one message and waits while the client's window is full. Rejects once the call is over.
   */
  send: (response: streamsPb.ReadResp) => Promise<void>;
  /**
   * Whether the client takes nothing: its window is full, and not just until the next bytes have
   * left.
   */
  isStuck: () => boolean;
  /** Aborted when the client has gone or cancelled. */
  signal: AbortSignal;
}

/** How long it may take until what was written has left the process. */
const LEAVES_WITHIN_MS = 5;

export function createResponder(
  call: grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>,
): Responder {
  const over = new AbortController();
  call.on('cancelled', () => over.abort());
  call.on('close', () => over.abort());
  call.on('error', () => over.abort());

  let waitingSince: number | undefined;

  async function send(response: streamsPb.ReadResp): Promise<void> {
    over.signal.throwIfAborted();
    if (call.write(response)) return;
    waitingSince = performance.now();
    await new Promise<void>((resolve, reject) => {
      const drained = () => {
        over.signal.removeEventListener('abort', gone);
        resolve();
      };
      const gone = () => {
        call.off('drain', drained);
        reject(new Error('the call is over'));
      };
      call.once('drain', drained);
      over.signal.addEventListener('abort', gone, { once: true });
    });
    waitingSince = undefined;
  }

  const isStuck = (): boolean =>
    waitingSince !== undefined && performance.now() - waitingSince > LEAVES_WITHIN_MS;

  return { send, isStuck, signal: over.signal };
}
