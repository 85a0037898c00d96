import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Expected, LogRecord, Proposed, TfPosition } from './types.ts';

interface ProposedMessage {
  getId(): sharedPb.UUID | undefined;
  getMetadataMap(): { get(key: string): string | undefined };
  getData_asU8(): Uint8Array;
  getCustomMetadata_asU8(): Uint8Array;
}

/**
 * An event as a client proposes it. Errors: a plain Error for what a server refuses as a bad
 * request.
 */
export function toProposed(message: ProposedMessage): Proposed {
  const id = parseUuid(message.getId());
  if (
    id === undefined ||
    !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) ||
    /^[0-]*$/.test(id)
  )
    throw new Error("Empty eventId provided. (Parameter 'eventId')");
  const type = message.getMetadataMap().get('type');
  const contentType = message.getMetadataMap().get('content-type');
  if (!type) throw new Error("Empty eventType provided. (Parameter 'eventType')");
  if (contentType === undefined)
    throw new Error("Required Metadata Property 'content-type' is missing");
  return {
    id,
    type,
    contentType,
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

const bits = (text: string): string =>
  BigInt.asUintN(64, BigInt(text)).toString(16).padStart(16, '0');

export function parseUuid(uuid: sharedPb.UUID | undefined): string | undefined {
  if (uuid === undefined || !uuid.hasStructured()) return uuid?.getString().toLowerCase();
  const structured = uuid.getStructured();
  const hex =
    bits(structured?.getMostSignificantBits() ?? '0') +
    bits(structured?.getLeastSignificantBits() ?? '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

export const streamName = (identifier: sharedPb.StreamIdentifier | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? new Uint8Array()).toString('utf8');

export const streamIdentifier = (stream: string): sharedPb.StreamIdentifier =>
  new sharedPb.StreamIdentifier().setStreamName(new Uint8Array(Buffer.from(stream)));

interface ExpectedRevision {
  hasNoStream(): boolean;
  hasAny(): boolean;
  hasStreamExists(): boolean;
}

export function toExpected(options: ExpectedRevision, revision: string): Expected {
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasAny()) return 'any';
  return options.hasStreamExists() ? 'stream_exists' : BigInt(revision);
}

/** `created` of an event is in units of 100 nanoseconds since 1970. */
const TICKS_PER_MILLISECOND = 10_000n;

export function eventResponse(record: LogRecord): streamsPb.ReadResp {
  const event = new streamsPb.ReadResp.ReadEvent.RecordedEvent()
    .setId(new sharedPb.UUID().setString(record.id))
    .setStreamIdentifier(streamIdentifier(record.stream))
    .setStreamRevision(String(record.revision))
    .setCommitPosition(String(record.position))
    .setPreparePosition(String(record.position))
    .setData(record.data)
    .setCustomMetadata(record.metadata);
  event
    .getMetadataMap()
    .set('type', record.type)
    .set('content-type', record.contentType)
    .set('created', String(record.created * TICKS_PER_MILLISECOND));
  return new streamsPb.ReadResp().setEvent(
    new streamsPb.ReadResp.ReadEvent().setEvent(event).setCommitPosition(String(record.position)),
  );
}

export const notFoundResponse = (stream: string): streamsPb.ReadResp =>
  new streamsPb.ReadResp().setStreamNotFound(
    new streamsPb.ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(stream)),
  );

export const confirmationResponse = (): streamsPb.ReadResp =>
  new streamsPb.ReadResp().setConfirmation(
    new streamsPb.ReadResp.SubscriptionConfirmation().setSubscriptionId(crypto.randomUUID()),
  );

export const caughtUpResponse = (): streamsPb.ReadResp =>
  new streamsPb.ReadResp().setCaughtUp(new streamsPb.ReadResp.CaughtUp());

export const checkpointResponse = ({ commit, prepare }: TfPosition): streamsPb.ReadResp =>
  new streamsPb.ReadResp().setCheckpoint(
    new streamsPb.ReadResp.Checkpoint()
      .setCommitPosition(String(commit))
      .setPreparePosition(String(prepare)),
  );

export const toPosition = (
  position: { getCommitPosition(): string; getPreparePosition(): string } | undefined,
): TfPosition => ({
  commit: BigInt(position?.getCommitPosition() ?? 0),
  prepare: BigInt(position?.getPreparePosition() ?? 0),
});
