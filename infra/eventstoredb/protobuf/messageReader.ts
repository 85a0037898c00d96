/** A 64-bit number; a bigint only if it is not exact as a number. */
export type Uint64 = number | bigint;

/** The wire types of protobuf. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

const cutOff = (): RangeError => new RangeError('a message of the event store is cut off');

/**
 * Reads the fields of a protobuf message, and of the messages in it, in the order in which they were
 * sent. Throws RangeError for a message that is cut off.
 */
export class MessageReader {
  readonly #buffer: Buffer;
  /** The end of the message that is being read. */
  #end: number;
  #offset = 0;
  #wireType = VARINT;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
    this.#end = buffer.length;
  }

  /** The offset of the value of the current field. */
  get offset(): number {
    return this.#offset;
  }

  /** The number of the next field; 0 at the end of the message. */
  next(): number {
    if (this.#offset >= this.#end) return 0;
    const tag = Number(this.uint64());
    this.#wireType = tag & 7;
    return tag >>> 3;
  }

  uint64(): Uint64 {
    // Nearly all numbers are tags and lengths of one byte.
    const byte = this.#buffer[this.#offset]!;
    if (byte >= 0x80 || this.#offset >= this.#end) return this.#longUint64();
    this.#offset += 1;
    return byte;
  }

  /** The length of the text in this field, in bytes. */
  length(): number {
    const length = Number(this.uint64());
    if (this.#offset + length > this.#end) throw cutOff();
    return length;
  }

  text(length = this.length()): string {
    const start = this.#offset;
    this.#offset += length;
    return this.#buffer.toString('utf8', start, this.#offset);
  }

  /** The text at the offset of a field that was skipped. */
  textAt(offset: number): string {
    const resumed = this.#offset;
    this.#offset = offset;
    const text = this.text();
    this.#offset = resumed;
    return text;
  }

  /** Whether the field at the offset, which was skipped, holds the text (`encodedText`). */
  hasTextAt(offset: number, encoded: Buffer): boolean {
    for (let index = 0; index < encoded.length; index += 1)
      if (this.#buffer[offset + index] !== encoded[index]) return false;
    return true;
  }

  /** Enters the message in this field. Returns the end of the outer message, for `leave`. */
  enter(): number {
    const outerEnd = this.#end;
    this.#end = this.length() + this.#offset;
    return outerEnd;
  }

  /** Leaves a message, and continues behind it. */
  leave(outerEnd: number): void {
    this.#offset = this.#end;
    this.#end = outerEnd;
  }

  /** The text in a field of the message in this field; empty if it has none. */
  textIn(number: number): string {
    const outerEnd = this.enter();
    let text = '';
    for (let field = this.next(); field !== 0; field = this.next())
      if (field === number) text = this.text();
      else this.skip();
    this.leave(outerEnd);
    return text;
  }

  skip(): void {
    if (this.#wireType === VARINT) this.uint64();
    else if (this.#wireType === LENGTH_DELIMITED) this.#advance(Number(this.uint64()));
    else if (this.#wireType === FIXED64) this.#advance(8);
    else if (this.#wireType === FIXED32) this.#advance(4);
    else throw new RangeError('a message of the event store has an unknown wire type');
  }

  #advance(length: number): void {
    this.#offset += length;
    if (this.#offset > this.#end) throw cutOff();
  }

  #longUint64(): Uint64 {
    let low = 0;
    let high = 0;
    let highUnit = 1;
    for (let shift = 0; shift < 70 && this.#offset < this.#end; shift += 7) {
      const byte = this.#buffer[this.#offset++]!;
      if (shift < 28) {
        low |= (byte & 0x7f) << shift;
      } else {
        high += (byte & 0x7f) * highUnit;
        highUnit *= 128;
      }
      if (byte >= 0x80) continue;
      const value = high * 2 ** 28 + low;
      return Number.isSafeInteger(value)
        ? value
        : BigInt.asUintN(64, (BigInt(high) << 28n) + BigInt(low));
    }
    throw cutOff();
  }
}

/** A text of less than 128 bytes as a field has it, after its length. */
export const encodedText = (text: string): Buffer =>
  Buffer.from([Buffer.byteLength(text), ...Buffer.from(text)]);
