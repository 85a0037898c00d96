import { addAbortListener } from 'node:events';
import { openAppendCall, type OpenCall, type Pending } from './appendCall.ts';
import type { Answer, Append } from './appendMessages.ts';
import type { Connection } from './connection.ts';

/** Sends an append and waits for its answer, until the signal aborts. */
export type AppendTo = (append: Append, signal: AbortSignal) => Promise<Answer>;

/**
 * An append that a living server has not answered for so long is sent once more beside the first,
 * which goes on waiting: the answer may have been lost. Not earlier, because a server answers an
 * append that is sent again while it is at work on it with a Timeout, after 2 to 3 s or at once. In
 * milliseconds; less where the deadline leaves no time for that.
 */
const AGAIN_MS = 4_000;
const AGAIN_PER_DEADLINE = 0.4;

interface Options {
  requiresLeader: boolean;
  deadlineMs: number;
}

/**
 * The appends of one connection: pipelined on one call, each answered on its own. Once an error
 * ends the call the outcome of all that were waiting is unknown: they reject, and the next append
 * opens another call. So it does where a call has fallen silent although its node lives, as one
 * that was open while the node had no quorum; what waits on that call goes on waiting.
 */
export function createAppendStream(
  connection: Connection,
  { requiresLeader, deadlineMs }: Options,
): AppendTo {
  // A node that is known to be slow is not pressed.
  const againMs = (): number =>
    Math.max(Math.min(AGAIN_MS, deadlineMs * AGAIN_PER_DEADLINE), connection.patienceMs());
  let open: OpenCall | undefined;

  const onEnd = (call: OpenCall): void => {
    if (open === call) open = undefined;
  };

  function send(waiting: Pending): () => void {
    if (open && open.silentMs() >= againMs()) open = undefined;
    const call = (open ??= openAppendCall(connection, { requiresLeader, onEnd }));
    const forget = call.send(waiting);
    return () => {
      forget();
      if (call !== open && call.isIdle()) call.cancel();
    };
  }

  return async (append, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const waiting: Pending = { append, resolve, reject, copies: 0 };
    const forget = [send(waiting)];
    const again = setInterval(() => forget.push(send(waiting)), againMs());
    using _ending = addAbortListener(signal, () => reject(signal.reason));
    try {
      return await promise;
    } finally {
      clearInterval(again);
      for (const forgetCopy of forget) forgetCopy();
    }
  };
}
