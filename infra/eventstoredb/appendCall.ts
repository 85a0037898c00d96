import { addAbortListener } from 'node:events';
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import { answerIn, toRequest, type Answer, type Append } from './appendMessages.ts';
import type { Connection } from './connection.ts';

/** An append that waits for its answer. */
export interface Pending {
  append: Append;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
  /** How many copies of it wait for an answer, on one call or on several. */
  copies: number;
}

/** One call that carries appends, each answered on its own. */
export interface OpenCall {
  /** Sends a copy of an append. Returns what takes it out again. */
  send(waiting: Pending): () => void;
  /** For how long nothing has come although something waits, in milliseconds. */
  silentMs(): number;
  /** True while nothing waits. */
  isIdle(): boolean;
  cancel(): void;
}

interface Options {
  requiresLeader: boolean;
  /** Called when the call is over. What was waiting on it is rejected then. */
  onEnd: (call: OpenCall) => void;
}

/** One copy fails. Another one may still be answered, with what happened. */
function fail(waiting: Pending, error: unknown): void {
  waiting.copies -= 1;
  if (waiting.copies === 0) waiting.reject(error);
}

/** Begins a call. It ends by an error, by the server, or with its connection. */
export function openAppendCall(
  { client, lost, heard }: Connection,
  { requiresLeader, onEnd }: Options,
): OpenCall {
  const opening = client.append(requiresLeader);
  /** By correlation id; every copy of an append has one of its own. */
  const pending = new Map<string, Pending>();
  /** When something came last, or the call was last at rest, by `performance.now`. */
  let heardAt = performance.now();

  const call: OpenCall = {
    send(waiting) {
      const correlationId = crypto.randomUUID();
      if (pending.size === 0) heardAt = performance.now();
      pending.set(correlationId, waiting);
      waiting.copies += 1;
      opening.then(
        (opened) =>
          pending.has(correlationId) && opened.write(toRequest(waiting.append, correlationId)),
        // A failure to open the call has rejected everything that was pending already.
        () => undefined,
      );
      return () => void pending.delete(correlationId);
    },
    silentMs: () => (pending.size === 0 ? 0 : performance.now() - heardAt),
    isIdle: () => pending.size === 0,
    cancel() {
      opening.then(
        (opened) => opened.cancel(),
        () => undefined,
      );
    },
  };

  const losing = addAbortListener(lost, () => {
    end(lost.reason);
    call.cancel();
  });

  function end(error: unknown): void {
    losing[Symbol.dispose]();
    onEnd(call);
    const waited = [...pending.values()];
    pending.clear();
    for (const waiting of waited) fail(waiting, error);
  }

  function settle(response: BatchAppendResp): void {
    heard();
    heardAt = performance.now();
    const id = response.getCorrelationId()?.getString() ?? '';
    const waiting = pending.get(id);
    if (!waiting) return;
    pending.delete(id);
    try {
      waiting.resolve(answerIn(response));
      waiting.copies -= 1;
    } catch (error) {
      fail(waiting, error);
    }
  }

  opening.then(
    (opened) =>
      opened
        .on('data', settle)
        .on('error', end)
        .on('end', () => end(new Error('the server ended the call'))),
    end,
  );
  return call;
}
