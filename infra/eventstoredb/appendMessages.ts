import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EncodedEvent, ExpectedRevision } from '../../shared/ports/eventStore.ts';
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

/** Errors, by the name of their message, after which the outcome is known. */
const KNOWN_OUTCOMES: Readonly<Record<string, Answer['kind']>> = {
  'event_store.client.WrongExpectedVersion': 'conflict',
  'event_store.client.StreamDeleted': 'conflict',
  'event_store.client.MaximumAppendSizeExceeded': 'refused',
  'event_store.client.MaximumAppendEventSizeExceeded': 'refused',
  'event_store.client.BadRequest': 'refused',
};

/** The message of one copy of an append. */
export function toRequest(
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
export function answerIn(response: streamsPb.BatchAppendResp): Answer {
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
