/**
 * Decodes the responses of `Streams.Read`. Subscriptions receive one message per event, and the
 * generated classes take half of the time that a follower needs to catch up: they copy each message,
 * build an object for each of its parts, and decode fields that are not used.
 */

/** A 64-bit number; a bigint only if it is not exact as a number. */
type Uint64 = number | bigint;

/** An event as the server sends it. */
export interface ServerEvent {
  id: string;
  stream: string;
  revision: number;
  commit: Uint64;
  /** `type`, `content-type` and `created`. */
  attributes: Readonly<Record<string, string>>;
  /** UTF-8. */
  data: Buffer;
  /** UTF-8. */
  metadata: Buffer;
}

/** A response, which has at most one of these members; none if it confirms a subscription. */
export interface ReadResponse {
  event?: ServerEvent;
  checkpoint?: { commit: Uint64; prepare: Uint64 };
  caughtUp?: true;
  streamNotFound?: true;
}

/** The wire types of protobuf. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

const EMPTY: Buffer = Buffer.alloc(0);

/** Reads the fields of one protobuf message, which lies between two offsets of a buffer. */
class FieldReader {
  readonly #buffer: Buffer;
  readonly #end: number;
  #offset: number;
  #wireType = VARINT;

  constructor(buffer: Buffer, offset = 0, end = buffer.length) {
    this.#buffer = buffer;
    this.#offset = offset;
    this.#end = end;
  }

  /** The number of the next field; 0 at the end of the message. */
  next(): number {
    if (this.#offset >= this.#end) return 0;
    const tag = Number(this.uint64());
    this.#wireType = tag & 7;
    return tag >>> 3;
  }

  uint64(): Uint64 {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#buffer[this.#offset++];
      if (byte === undefined || this.#offset > this.#end) break;
      const bits = byte & 0x7f;
      if (shift < 28) low += bits * 2 ** shift;
      else high += bits * 2 ** (shift - 28);
      if (byte < 0x80) {
        const value = high * 2 ** 28 + low;
        return Number.isSafeInteger(value)
          ? value
          : BigInt.asUintN(64, (BigInt(high) << 28n) + BigInt(low));
      }
    }
    throw new RangeError('a message of the event store is cut off');
  }

  bytes(): Buffer {
    const length = Number(this.uint64());
    return this.#buffer.subarray(this.#advance(length), this.#offset);
  }

  text(): string {
    const length = Number(this.uint64());
    return this.#buffer.toString('utf8', this.#advance(length), this.#offset);
  }

  /** A reader of the message in this field. */
  message(): FieldReader {
    const length = Number(this.uint64());
    return new FieldReader(this.#buffer, this.#advance(length), this.#offset);
  }

  skip(): void {
    if (this.#wireType === VARINT) this.uint64();
    else if (this.#wireType === LENGTH_DELIMITED) this.#advance(Number(this.uint64()));
    else if (this.#wireType === FIXED64) this.#advance(8);
    else if (this.#wireType === FIXED32) this.#advance(4);
    else throw new RangeError('a message of the event store has an unknown wire type');
  }

  /** Returns the offset before it. */
  #advance(length: number): number {
    const start = this.#offset;
    this.#offset += length;
    if (this.#offset > this.#end) throw new RangeError('a message of the event store is cut off');
    return start;
  }
}

/** The text in a field of a message; empty if it has none. */
function readText(reader: FieldReader, number: number): string {
  let text = '';
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === number) text = reader.text();
    else reader.skip();
  return text;
}

function readAttribute(reader: FieldReader, attributes: Record<string, string>): void {
  let [name, value] = ['', ''];
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) name = reader.text();
    else if (field === 2) value = reader.text();
    else reader.skip();
  attributes[name] = value;
}

function readRecordedEvent(reader: FieldReader): ServerEvent {
  const attributes: Record<string, string> = {};
  const event = {
    id: '',
    stream: '',
    revision: 0,
    commit: 0 as Uint64,
    attributes,
    data: EMPTY,
    metadata: EMPTY,
  };
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) event.id = readText(reader.message(), 2);
    else if (field === 2) event.stream = readText(reader.message(), 3);
    else if (field === 3) event.revision = Number(reader.uint64());
    else if (field === 5) event.commit = reader.uint64();
    else if (field === 6) readAttribute(reader.message(), attributes);
    else if (field === 7) event.metadata = reader.bytes();
    else if (field === 8) event.data = reader.bytes();
    else reader.skip();
  return event;
}

/** The event of a `ReadEvent`, which may also have a link to it. */
function readEvent(reader: FieldReader): ServerEvent | undefined {
  let event: ServerEvent | undefined;
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) event = readRecordedEvent(reader.message());
    else reader.skip();
  return event;
}

function readCheckpoint(reader: FieldReader): { commit: Uint64; prepare: Uint64 } {
  const checkpoint = { commit: 0 as Uint64, prepare: 0 as Uint64 };
  for (let field = reader.next(); field !== 0; field = reader.next())
    if (field === 1) checkpoint.commit = reader.uint64();
    else if (field === 2) checkpoint.prepare = reader.uint64();
    else reader.skip();
  return checkpoint;
}

/**
 * Decodes a response (`ReadResp` of streams.proto). Its buffers are parts of the message. Throws
 * RangeError for a message that is cut off.
 */
export function decodeReadResponse(message: Buffer): ReadResponse {
  const reader = new FieldReader(message);
  const response: ReadResponse = {};
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    const event = field === 1 ? readEvent(reader.message()) : undefined;
    if (event) response.event = event;
    else if (field === 3) response.checkpoint = readCheckpoint(reader.message());
    else if (field !== 1) reader.skip();
    if (field === 4) response.streamNotFound = true;
    if (field === 8) response.caughtUp = true;
  }
  return response;
}
