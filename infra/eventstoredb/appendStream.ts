import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EncodedEvent, ExpectedRevision } from '../../shared/ports/eventStore.ts';
import type { AppendCall } from './clientInternals.ts';
import type { Connection } from './connections.ts';
import { AccessDenied, NotReady } from './serverErrors.ts';

export interface Append {
  stream: string;
  expected: ExpectedRevision;
  events: readonly EncodedEvent[];
}

/** What the server said to an append. */
export type Answer =
  | { kind: 'written'; revision: number; commit: bigint | undefined }
  /** The stream is not at the expected revision, or is ended for ever. */
  | { kind: 'conflict' }
  /** The server does not take the events as they are. */
  | { kind: 'refused'; reason: string };

/** Kinds of errors, by the name of their message, after which the outcome is known. Any other one leaves it open. */
const KNOWN_OUTCOMES: Readonly<Record<string, Answer['kind']>> = {
  'event_store.client.WrongExpectedVersion': 'conflict',
  'event_store.client.StreamDeleted': 'conflict',
  'event_store.client.MaximumAppendSizeExceeded': 'refused',
  'event_store.client.MaximumAppendEventSizeExceeded': 'refused',
  'event_store.client.BadRequest': 'refused',
};

function request(
  { stream, expected, events }: Append,
  correlationId: string,
): streamsPb.BatchAppendReq {
  const identifier = new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream));
  const options = new streamsPb.BatchAppendReq.Options().setStreamIdentifier(identifier);
  if (expected === 'no_stream') options.setNoStream(new sharedPb.Empty());
  else options.setStreamPosition(String(expected));
  const message = new streamsPb.BatchAppendReq()
    .setCorrelationId(new sharedPb.UUID().setString(correlationId))
    .setOptions(options)
    .setIsFinal(true);
  for (const { id, type, data, metadata } of events) {
    const proposed = new streamsPb.BatchAppendReq.ProposedMessage()
      .setId(new sharedPb.UUID().setString(id))
      .setData(Buffer.from(data))
      .setCustomMetadata(Buffer.from(metadata));
    proposed.getMetadataMap().set('type', type).set('content-type', 'application/json');
    message.addProposedMessages(proposed);
  }
  return message;
}

/** The answer in a response. Throws when it leaves open whether the events were written. */
function answer(response: streamsPb.BatchAppendResp): Answer {
  const success = response.getSuccess();
  if (success) {
    const position = success.getPosition();
    return {
      kind: 'written',
      revision: Number(success.getCurrentRevision()),
      commit: position && BigInt(position.getCommitPosition()),
    };
  }
  const error = response.getError();
  const name = error?.getDetails()?.getTypeName() ?? '';
  if (name === 'event_store.client.AccessDenied')
    throw new AccessDenied('the append is not allowed');
  const kind = KNOWN_OUTCOMES[name];
  if (kind === 'conflict') return { kind };
  if (kind === 'refused') return { kind, reason: error?.getMessage() ?? '' };
  if (/Server Is Not Ready/i.test(error?.getMessage() ?? ''))
    throw new NotReady('the server is not ready');
  throw new Error(`the outcome of the append is unknown: ${name} ${error?.getMessage() ?? ''}`);
}

/** Sends an append and waits for its answer, until the signal aborts. */
export type AppendTo = (append: Append, signal: AbortSignal) => Promise<Answer>;

/**
 * An append that a living server has not answered for so long is sent once more beside the first, which goes on waiting:
 * the answer may have been lost. Not earlier, because a server answers an append that is sent again while it is at work on it
 * with a Timeout, after 2 to 3 s or at once. In milliseconds; less where the deadline leaves no time for that.
 */
const AGAIN_MS = 4_000;
const AGAIN_PER_DEADLINE = 0.4;

interface Pending {
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
  /** How many copies of it wait for an answer. */
  copies: number;
}

interface OpenCall {
  call: Promise<AppendCall>;
  /** By correlation id; every copy of an append has one of its own. */
  pending: Map<string, Pending>;
  /** When something came on it last, or it was last at rest, by `performance.now`. */
  heardAt: number;
}

interface Options {
  requiresLeader: boolean;
  deadlineMs: number;
}

/**
 * The appends of one connection: pipelined on one call, each answered on its own. Once an error ends the call the outcome of
 * all that were waiting is unknown: they reject, and the next append opens another call. So it does where a call has fallen
 * silent although its node lives, as one that was open while the node had no quorum; what waits on that call goes on waiting.
 */
export function createAppendStream(
  { client, lost, heard, patienceMs }: Connection,
  { requiresLeader, deadlineMs }: Options,
): AppendTo {
  // A node that is known to be slow is not pressed.
  const againMs = (): number =>
    Math.max(Math.min(AGAIN_MS, deadlineMs * AGAIN_PER_DEADLINE), patienceMs());
  let open: OpenCall | undefined;

  function openCall(): OpenCall {
    const stream: OpenCall = {
      call: client.append(requiresLeader),
      pending: new Map(),
      heardAt: performance.now(),
    };

    function end(error: unknown): void {
      lost.removeEventListener('abort', abandon);
      if (open === stream) open = undefined;
      const waited = [...stream.pending.values()];
      stream.pending.clear();
      for (const waiting of waited) {
        waiting.copies -= 1;
        // Another copy, on another call, may still be answered.
        if (waiting.copies === 0) waiting.reject(error);
      }
    }
    function abandon(): void {
      end(lost.reason);
      cancel(stream);
    }
    function settle(response: streamsPb.BatchAppendResp): void {
      heard();
      stream.heardAt = performance.now();
      const id = response.getCorrelationId()?.getString() ?? '';
      const waiting = stream.pending.get(id);
      if (!waiting) return;
      stream.pending.delete(id);
      waiting.copies -= 1;
      try {
        waiting.resolve(answer(response));
      } catch (error) {
        // Another copy may still be answered with what happened.
        if (waiting.copies === 0) waiting.reject(error);
      }
    }

    if (lost.aborted) abandon();
    else lost.addEventListener('abort', abandon, { once: true });
    stream.call.then(
      (call) =>
        call
          .on('data', settle)
          .on('error', end)
          .on('end', () => end(new Error('the server ended the call'))),
      end,
    );
    return stream;
  }

  function send(append: Append, waiting: Pending): () => void {
    if (open && open.pending.size > 0 && performance.now() - open.heardAt >= againMs())
      open = undefined;
    const stream = (open ??= openCall());
    const correlationId = crypto.randomUUID();
    if (stream.pending.size === 0) stream.heardAt = performance.now();
    stream.pending.set(correlationId, waiting);
    waiting.copies += 1;
    // A failure to open the call has rejected everything that was pending already.
    stream.call.then(
      (call) => stream.pending.has(correlationId) && call.write(request(append, correlationId)),
      () => undefined,
    );
    return () => {
      stream.pending.delete(correlationId);
      if (stream !== open && stream.pending.size === 0) cancel(stream);
    };
  }

  return async (append, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const waiting: Pending = { resolve, reject, copies: 0 };
    const late = (): void => reject(signal.reason);
    const forget = [send(append, waiting)];
    const again = setInterval(() => forget.push(send(append, waiting)), againMs());
    if (signal.aborted) late();
    else signal.addEventListener('abort', late, { once: true });
    try {
      return await promise;
    } finally {
      clearInterval(again);
      signal.removeEventListener('abort', late);
      for (const forgetCopy of forget) forgetCopy();
    }
  };
}

function cancel({ call }: OpenCall): void {
  call.then(
    (opened) => opened.cancel(),
    () => undefined,
  );
}
