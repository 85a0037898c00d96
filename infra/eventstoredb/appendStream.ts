import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EncodedEvent, ExpectedRevision } from '../../shared/ports/eventStore.ts';
import { openAppendCall, type AppendCall } from './clientInternals.ts';
import type { Connection } from './connection.ts';
import { AccessDenied } from './serverErrors.ts';

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
  'event_store.client.BadRequest': 'refused',
};

function request({ stream, expected, events }: Append, correlationId: string): streamsPb.BatchAppendReq {
  const identifier = new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream));
  const options = new streamsPb.BatchAppendReq.Options().setStreamIdentifier(identifier);
  if (expected === 'no_stream') options.setNoStream(new sharedPb.Empty());
  else options.setStreamPosition(String(expected));
  const message = new streamsPb.BatchAppendReq().setCorrelationId(new sharedPb.UUID().setString(correlationId)).setOptions(options).setIsFinal(true);
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
    return { kind: 'written', revision: Number(success.getCurrentRevision()), commit: position && BigInt(position.getCommitPosition()) };
  }
  const error = response.getError();
  const name = error?.getDetails()?.getTypeName() ?? '';
  if (name === 'event_store.client.AccessDenied') throw new AccessDenied('the append is not allowed');
  const kind = KNOWN_OUTCOMES[name];
  if (kind === 'conflict') return { kind };
  if (kind === 'refused') return { kind, reason: error?.getMessage() ?? '' };
  throw new Error(`the outcome of the append is unknown: ${name} ${error?.getMessage() ?? ''}`);
}

interface Pending {
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/**
 * The appends of one connection: pipelined on one call, each answered on its own. Once an error ends the call the outcome of
 * all that were waiting is unknown: they reject, and the next append opens another call.
 */
export function createAppendStream({ client, lost, heard }: Connection, requiresLeader: boolean): (append: Append) => Promise<Answer> {
  let open: { call: Promise<AppendCall>; pending: Map<string, Pending> } | undefined;

  function openCall(): NonNullable<typeof open> {
    const pending = new Map<string, Pending>();
    const stream = { call: openAppendCall({ client, requiresLeader, signal: lost }), pending };

    function end(error: unknown): void {
      lost.removeEventListener('abort', abandon);
      if (open === stream) open = undefined;
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    }
    function abandon(): void {
      end(lost.reason);
      stream.call.then(
        (call) => call.cancel(),
        () => undefined,
      );
    }
    function settle(response: streamsPb.BatchAppendResp): void {
      heard();
      const id = response.getCorrelationId()?.getString() ?? '';
      const waiting = pending.get(id);
      pending.delete(id);
      try {
        waiting?.resolve(answer(response));
      } catch (error) {
        waiting?.reject(error);
      }
    }

    lost.addEventListener('abort', abandon, { once: true });
    stream.call.then((call) => call.on('data', settle).on('error', end).on('end', () => end(new Error('the server ended the call'))), end);
    return stream;
  }

  return (append) =>
    new Promise((resolve, reject) => {
      const { call, pending } = (open ??= openCall());
      const correlationId = crypto.randomUUID();
      pending.set(correlationId, { resolve, reject });
      // A failure to open the call has rejected everything that was pending already.
      call.then((writable) => pending.has(correlationId) && writable.write(request(append, correlationId)), () => undefined);
    });
}
