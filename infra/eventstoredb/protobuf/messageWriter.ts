/** The wire types of protobuf. */
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** The number of bytes of a number, which is at least 0. */
function sizeOfNumber(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) size += 1;
  return size;
}

/** The size of a field with a text or a message of this length. Field numbers are below 16. */
export const sizeOfField = (length: number): number => 1 + sizeOfNumber(length) + length;

/** The size of a field with a number. */
export const sizeOfNumberField = (value: number): number => 1 + sizeOfNumber(value);

/**
 * Writes a protobuf message of a known size. The length of a text or a message comes before it, so
 * it is computed by the caller.
 */
export class MessageWriter {
  readonly #buffer: Buffer;
  #offset = 0;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafe(size);
  }

  /** Begins a field with a text or a message. */
  begin(field: number, length: number): void {
    this.#write(field * 8 + LENGTH_DELIMITED);
    this.#number(length);
  }

  text(field: number, text: string, length: number): void {
    this.begin(field, length);
    this.#offset += this.#buffer.write(text, this.#offset, length, 'utf8');
  }

  number(field: number, value: number): void {
    this.#write(field * 8 + VARINT);
    this.#number(value);
  }

  /** The whole message. Its memory was not cleared, so a size that does not fit is an error. */
  finish(): Buffer {
    if (this.#offset !== this.#buffer.length)
      throw new RangeError('a message to the event store has another size than expected');
    return this.#buffer;
  }

  #number(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#write((rest % 128) + 0x80);
    this.#write(rest);
  }

  #write(byte: number): void {
    this.#buffer[this.#offset++] = byte;
  }
}
