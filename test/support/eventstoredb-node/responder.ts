import type grpc from '@grpc/grpc-js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';

export interface Responder {
  /** Writes one message and waits while the client's window is full. Resolves true when it had to wait. Rejects once the call is over. */
  send: (response: streamsPb.ReadResp) => Promise<boolean>;
  /** Aborted when the client has gone or cancelled. */
  signal: AbortSignal;
}

export function createResponder(call: grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>): Responder {
  const over = new AbortController();
  call.on('cancelled', () => over.abort());
  call.on('close', () => over.abort());
  call.on('error', () => over.abort());

  async function send(response: streamsPb.ReadResp): Promise<boolean> {
    over.signal.throwIfAborted();
    if (call.write(response)) return false;
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
    return true;
  }

  return { send, signal: over.signal };
}
