/**
 * Decodes the responses of `Streams.Read`. Subscriptions receive one message per event, and the
 * generated classes take half of the time that a follower needs to catch up: they copy each message,
 * build an object for each of its parts, and decode fields that are not used.
 */
import { encodedText, MessageReader, type Uint64 } from '../protobuf/messageReader.ts';

/** An event as the server sends it. */
export interface ServerEvent {
  id: string;
  stream: string;
  revision: number;
  commit: Uint64;
  type: string;
  /** Whether its content type is that of JSON. */
  isJson: boolean;
  data: string;
  metadata: string;
  /** The size of data and metadata. */
  bytes: number;
}

/** A response, which has at most one of these members; none if it confirms a subscription. */
export interface ReadResponse {
  event?: ServerEvent;
  checkpoint?: { commit: Uint64; prepare: Uint64 };
  caughtUp?: true;
  streamNotFound?: true;
}

const TYPE = encodedText('type');
const CONTENT_TYPE = encodedText('content-type');
const JSON_TYPE = encodedText('application/json');

/** The offset of a field that a message lacks. */
const ABSENT = -1;

/** Reads an entry of the map that has the type, the content type and the time of an event. */
function readAttribute(reader: MessageReader, event: ServerEvent): void {
  const outerEnd = reader.enter();
  let name = ABSENT;
  let value = ABSENT;
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) name = reader.offset;
    else if (field === 2) value = reader.offset;
    reader.skip();
  }
  if (value !== ABSENT) {
    if (reader.hasTextAt(name, TYPE)) event.type = reader.textAt(value);
    else if (reader.hasTextAt(name, CONTENT_TYPE))
      event.isJson = reader.hasTextAt(value, JSON_TYPE);
  }
  reader.leave(outerEnd);
}

/** Reads a text of an event, and counts its bytes. */
function readPayload(reader: MessageReader, event: ServerEvent): string {
  const length = reader.length();
  event.bytes += length;
  return reader.text(length);
}

function readRecordedEvent(reader: MessageReader): ServerEvent {
  const outerEnd = reader.enter();
  const event: ServerEvent = {
    id: '',
    stream: '',
    revision: 0,
    commit: 0,
    type: '',
    isJson: false,
    data: '',
    metadata: '',
    bytes: 0,
  };
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) event.id = reader.textIn(2);
    else if (field === 2) event.stream = reader.textIn(3);
    else if (field === 3) event.revision = Number(reader.uint64());
    else if (field === 5) event.commit = reader.uint64();
    else if (field === 6) readAttribute(reader, event);
    else if (field === 7) event.metadata = readPayload(reader, event);
    else if (field === 8) event.data = readPayload(reader, event);
    else reader.skip();
  reader.leave(outerEnd);
  return event;
}

/** The event of a `ReadEvent`, which may also have a link to it. */
function readEvent(reader: MessageReader): ServerEvent | undefined {
  const outerEnd = reader.enter();
  let event: ServerEvent | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) event = readRecordedEvent(reader);
    else reader.skip();
  reader.leave(outerEnd);
  return event;
}

function readCheckpoint(reader: MessageReader): { commit: Uint64; prepare: Uint64 } {
  const outerEnd = reader.enter();
  const checkpoint = { commit: 0 as Uint64, prepare: 0 as Uint64 };
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) checkpoint.commit = reader.uint64();
    else if (field === 2) checkpoint.prepare = reader.uint64();
    else reader.skip();
  reader.leave(outerEnd);
  return checkpoint;
}

/** Decodes a response (`ReadResp` of streams.proto). Throws RangeError for one that is cut off. */
export function decodeReadResponse(message: Buffer): ReadResponse {
  const reader = new MessageReader(message);
  const response: ReadResponse = {};
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    const event = field === 1 ? readEvent(reader) : undefined;
    if (event) response.event = event;
    else if (field === 3) response.checkpoint = readCheckpoint(reader);
    else if (field !== 1) reader.skip();
    if (field === 4) response.streamNotFound = true;
    if (field === 8) response.caughtUp = true;
  }
  return response;
}
