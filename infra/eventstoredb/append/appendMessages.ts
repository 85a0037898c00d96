/**
 * Encodes the requests of `Streams.BatchAppend` and decodes its responses. The generated classes take
 * four times the CPU time: they build an object for each part of a message, and copy its bytes from
 * part to part.
 */
import type { EncodedEvent, ExpectedRevision } from '../../../shared/ports/eventStore.ts';
import { MessageReader, type Uint64 } from '../protobuf/messageReader.ts';
import { MessageWriter, sizeOfField, sizeOfNumberField } from '../protobuf/messageWriter.ts';

export interface AppendRequest {
  stream: string;
  expected: ExpectedRevision;
  events: readonly EncodedEvent[];
}

/** The server's answer to an append. */
export type AppendAnswer =
  | { kind: 'written'; revision: number; commit: Uint64 | undefined }
  /** The stream is not at the expected revision, or was tombstoned. */
  | { kind: 'conflict' }
  /** The server does not accept the events. */
  | { kind: 'rejected'; reason: string };

export interface AppendResponse {
  correlationId: string;
  /** An answer, or why there is none. */
  outcome:
    | AppendAnswer
    | { kind: 'access_denied' }
    | { kind: 'not_ready' }
    /** The events may have been written. */
    | { kind: 'unknown'; reason: string };
}

/** The message names of errors with a known outcome. */
const KNOWN_OUTCOMES: Readonly<Record<string, 'conflict' | 'rejected' | 'access_denied'>> = {
  'event_store.client.WrongExpectedVersion': 'conflict',
  'event_store.client.StreamDeleted': 'conflict',
  'event_store.client.MaximumAppendSizeExceeded': 'rejected',
  'event_store.client.MaximumAppendEventSizeExceeded': 'rejected',
  'event_store.client.BadRequest': 'rejected',
  'event_store.client.AccessDenied': 'access_denied',
};

/** Field numbers of streams.proto and shared.proto. */
const REQUEST = { correlationId: 1, options: 2, proposedMessages: 3, isFinal: 4 };
const OPTIONS = { streamIdentifier: 1, streamPosition: 2, noStream: 3 };
const EVENT = { id: 1, metadata: 2, customMetadata: 3, data: 4 };
const MAP_ENTRY = { key: 1, value: 2 };
const UUID_TEXT = 2;
const STREAM_NAME = 3;

const CONTENT_TYPE = { key: 'content-type', value: 'application/json' };

const sizeOfEntry = (keyLength: number, valueLength: number): number =>
  sizeOfField(keyLength) + sizeOfField(valueLength);

const CONTENT_TYPE_SIZE = sizeOfEntry(CONTENT_TYPE.key.length, CONTENT_TYPE.value.length);

/** The lengths of an event's texts and messages, in bytes. */
function measureEvent({ id, type, data, metadata }: EncodedEvent) {
  const lengths = {
    id: Buffer.byteLength(id),
    type: Buffer.byteLength(type),
    data: Buffer.byteLength(data),
    metadata: Buffer.byteLength(metadata),
  };
  const entry = sizeOfEntry('type'.length, lengths.type);
  const size =
    sizeOfField(sizeOfField(lengths.id)) +
    sizeOfField(entry) +
    sizeOfField(CONTENT_TYPE_SIZE) +
    sizeOfField(lengths.metadata) +
    sizeOfField(lengths.data);
  return { ...lengths, entry, size };
}

function writeUuid(writer: MessageWriter, field: number, uuid: string, length: number): void {
  writer.begin(field, sizeOfField(length));
  writer.text(UUID_TEXT, uuid, length);
}

function writeEvent(
  writer: MessageWriter,
  { id, type, data, metadata }: EncodedEvent,
  lengths: ReturnType<typeof measureEvent>,
): void {
  writer.begin(REQUEST.proposedMessages, lengths.size);
  writeUuid(writer, EVENT.id, id, lengths.id);
  writer.begin(EVENT.metadata, lengths.entry);
  writer.text(MAP_ENTRY.key, 'type', 'type'.length);
  writer.text(MAP_ENTRY.value, type, lengths.type);
  writer.begin(EVENT.metadata, CONTENT_TYPE_SIZE);
  writer.text(MAP_ENTRY.key, CONTENT_TYPE.key, CONTENT_TYPE.key.length);
  writer.text(MAP_ENTRY.value, CONTENT_TYPE.value, CONTENT_TYPE.value.length);
  writer.text(EVENT.customMetadata, metadata, lengths.metadata);
  writer.text(EVENT.data, data, lengths.data);
}

/** Encodes an append (`BatchAppendReq` of streams.proto) in one message. */
export function encodeAppendRequest(
  { stream, expected, events }: AppendRequest,
  correlationId: string,
): Buffer {
  const nameLength = Buffer.byteLength(stream);
  const idLength = Buffer.byteLength(correlationId);
  const measured = events.map(measureEvent);
  const identifierSize = sizeOfField(nameLength);
  const expectedSize = expected === 'no_stream' ? sizeOfField(0) : sizeOfNumberField(expected);
  const optionsSize = sizeOfField(identifierSize) + expectedSize;
  const writer = new MessageWriter(
    sizeOfField(sizeOfField(idLength)) +
      sizeOfField(optionsSize) +
      measured.reduce((sum, { size }) => sum + sizeOfField(size), 0) +
      sizeOfNumberField(1),
  );
  writeUuid(writer, REQUEST.correlationId, correlationId, idLength);
  writer.begin(REQUEST.options, optionsSize);
  writer.begin(OPTIONS.streamIdentifier, identifierSize);
  writer.text(STREAM_NAME, stream, nameLength);
  if (expected === 'no_stream') writer.begin(OPTIONS.noStream, 0);
  else writer.number(OPTIONS.streamPosition, expected);
  events.forEach((event, index) => writeEvent(writer, event, measured[index]!));
  writer.number(REQUEST.isFinal, 1);
  return writer.finish();
}

function readPosition(reader: MessageReader): Uint64 {
  const outerEnd = reader.enter();
  let commit: Uint64 = 0;
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) commit = reader.uint64();
    else reader.skip();
  reader.leave(outerEnd);
  return commit;
}

function readSuccess(reader: MessageReader): AppendAnswer {
  const outerEnd = reader.enter();
  let revision = 0;
  let commit: Uint64 | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) revision = Number(reader.uint64());
    else if (field === 3) commit = readPosition(reader);
    else reader.skip();
  reader.leave(outerEnd);
  return { kind: 'written', revision, commit };
}

/** Reads a `google.rpc.Status`, whose details are a message with a URL that ends with its name. */
function readError(reader: MessageReader): AppendResponse['outcome'] {
  const outerEnd = reader.enter();
  let name = '';
  let message = '';
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 2) message = reader.text();
    else if (field === 3) name = reader.textIn(1).split('/').at(-1)!;
    else reader.skip();
  reader.leave(outerEnd);
  const kind = KNOWN_OUTCOMES[name];
  if (kind === 'rejected') return { kind, reason: message };
  if (kind) return { kind };
  if (/Server Is Not Ready/i.test(message)) return { kind: 'not_ready' };
  return { kind: 'unknown', reason: `${name} ${message}` };
}

/** Decodes a response (`BatchAppendResp` of streams.proto). Throws RangeError for one that is cut off. */
export function decodeAppendResponse(message: Buffer): AppendResponse {
  const reader = new MessageReader(message);
  const response: AppendResponse = {
    correlationId: '',
    outcome: { kind: 'unknown', reason: 'the answer is empty' },
  };
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) response.correlationId = reader.textIn(UUID_TEXT);
    else if (field === 2) response.outcome = readError(reader);
    else if (field === 3) response.outcome = readSuccess(reader);
    else reader.skip();
  return response;
}
