import { addAbortListener } from 'node:events';
import type { NodeConnection } from '../connection/connectionManager.ts';
import { AccessDeniedError, NotReadyError } from '../connection/serverErrors.ts';
import {
  encodeAppendRequest,
  type AppendAnswer,
  type AppendRequest,
  type AppendResponse,
} from './appendMessages.ts';

/** Throws when the response leaves open whether the events were written, or the user may not append. */
function requireAnswer({ outcome }: AppendResponse): AppendAnswer {
  if (outcome.kind === 'access_denied') throw new AccessDeniedError('the append is not allowed');
  if (outcome.kind === 'not_ready') throw new NotReadyError('the server is not ready');
  if (outcome.kind === 'unknown')
    throw new Error(`the outcome of the append is unknown: ${outcome.reason}`);
  return outcome;
}

/** An append that waits for its answer. */
interface PendingAppend {
  request: AppendRequest;
  resolve: (answer: AppendAnswer) => void;
  reject: (error: unknown) => void;
  /** The number of copies, on one call or several, that wait for an answer. */
  pendingCopies: number;
}

/** A BatchAppend call. The server answers each of its appends separately. */
interface OpenAppendCall {
  /** Sends a copy of an append. Returns a function that stops waiting for its answer. */
  send(append: PendingAppend): () => void;
  /**
   * How long the server has sent nothing although copies waited for it, in milliseconds. Copies that
   * were given up count as well.
   */
  silentMs(): number;
  /** Whether no copy is pending. */
  isIdle(): boolean;
  cancel(): void;
}

/** Fails one copy. Another copy of the append may still receive the outcome. */
function failCopy(append: PendingAppend, error: unknown): void {
  append.pendingCopies -= 1;
  if (append.pendingCopies === 0) append.reject(error);
}

/** Opens a call. An error, the server or the loss of the connection ends it and fails its copies. */
function openAppendCall(
  { client, lost, recordActivity }: NodeConnection,
  { requiresLeader, onEnd }: { requiresLeader: boolean; onEnd: (call: OpenAppendCall) => void },
): OpenAppendCall {
  const opening = client.openBatchAppend(requiresLeader);
  /** By correlation id, which is unique for each copy. */
  const pendingCopies = new Map<string, PendingAppend>();
  /** Since when the server owes an answer, by `performance.now()`. */
  let silentSince: number | undefined;

  const call: OpenAppendCall = {
    send(append) {
      const correlationId = crypto.randomUUID();
      silentSince ??= performance.now();
      pendingCopies.set(correlationId, append);
      append.pendingCopies += 1;
      opening.then(
        (opened) =>
          pendingCopies.has(correlationId) &&
          opened.write(encodeAppendRequest(append.request, correlationId)),
        // When opening fails, `end` rejects all pending copies.
        () => undefined,
      );
      return () => void pendingCopies.delete(correlationId);
    },
    silentMs: () => (silentSince === undefined ? 0 : performance.now() - silentSince),
    isIdle: () => pendingCopies.size === 0,
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
    const failed = [...pendingCopies.values()];
    pendingCopies.clear();
    for (const append of failed) failCopy(append, error);
  }

  function handleResponse(response: AppendResponse): void {
    recordActivity();
    const { correlationId } = response;
    const append = pendingCopies.get(correlationId);
    pendingCopies.delete(correlationId);
    silentSince = pendingCopies.size === 0 ? undefined : performance.now();
    if (!append) return;
    try {
      append.resolve(requireAnswer(response));
      append.pendingCopies -= 1;
    } catch (error) {
      failCopy(append, error);
    }
  }

  opening.then(
    (opened) =>
      opened
        .on('data', handleResponse)
        .on('error', end)
        .on('end', () => end(new Error('the server ended the call'))),
    end,
  );
  return call;
}

/** Sends an append and waits for its answer until the signal aborts. */
export type SendAppend = (request: AppendRequest, signal: AbortSignal) => Promise<AppendAnswer>;

/**
 * The time after which an unanswered append is resent, in milliseconds, while the first copy keeps
 * waiting: the answer may be lost. An earlier copy would make the server answer with a Timeout, at
 * once or after 2 to 3 s, while it still processes the first one. Shorter for a short deadline.
 */
const RESEND_MS = 4_000;
const RESEND_SHARE_OF_DEADLINE = 0.4;

/**
 * Creates the sender of a connection. Its appends are pipelined on one call. An error ends the call
 * and rejects all pending appends with an unknown outcome; the next append opens another call.
 *
 * A call can be silent although its node is alive, for example after the node had no quorum. Then
 * new copies use another call, and pending copies keep waiting on the silent one.
 */
export function createAppendSender(
  connection: NodeConnection,
  { requiresLeader, deadlineMs }: { requiresLeader: boolean; deadlineMs: number },
): SendAppend {
  // A slow node gets more time, so that copies do not add to its load.
  const resendMs = (): number =>
    Math.max(
      Math.min(RESEND_MS, deadlineMs * RESEND_SHARE_OF_DEADLINE),
      connection.silenceLimitMs(),
    );
  let currentCall: OpenAppendCall | undefined;

  const onEnd = (call: OpenAppendCall): void => {
    if (currentCall === call) currentCall = undefined;
  };

  function sendCopy(append: PendingAppend): () => void {
    if (currentCall && currentCall.silentMs() >= resendMs()) {
      if (currentCall.isIdle()) currentCall.cancel();
      currentCall = undefined;
    }
    const call = (currentCall ??= openAppendCall(connection, { requiresLeader, onEnd }));
    const stopWaiting = call.send(append);
    return () => {
      stopWaiting();
      if (call !== currentCall && call.isIdle()) call.cancel();
    };
  }

  return async (request, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<AppendAnswer>();
    const append: PendingAppend = { request, resolve, reject, pendingCopies: 0 };
    const stopWaiting = [sendCopy(append)];
    const resendTimer = setInterval(() => stopWaiting.push(sendCopy(append)), resendMs());
    using _aborting = addAbortListener(signal, () => reject(signal.reason));
    try {
      return await promise;
    } finally {
      clearInterval(resendTimer);
      for (const stop of stopWaiting) stop();
    }
  };
}
