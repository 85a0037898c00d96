/**
 * Guards the process against a server that breaks the protocol. pg (8.23.1) parses messages in a
 * `data` listener of its socket, where an exception would end the process. pg-protocol (1.16.1)
 * trusts the lengths inside a message: it would read an error without its end in an endless loop,
 * and fields may overlap, so that a small row would take gigabytes.
 */
import type { Duplex } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { Connection } from 'pg';
import { BufferReader } from 'pg-protocol/dist/buffer-reader.js';
import { Parser } from 'pg-protocol/dist/parser.js';

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** The most bytes of the answer to one query: its rows are on the heap until it ends. */
const MAX_ANSWER_BYTES = getHeapStatistics().heap_size_limit / 2;
/** The size of the length of a message, which counts itself. */
const LENGTH_BYTES = 4;
/** The code before the length, which does not count it. */
const CODE_BYTES = 1;

interface InternalsOfReader {
  offset: number;
  /** Added here: where the message ends in the buffer. */
  end: number;
  string(length: number): string;
  cstring(): string;
}

interface InternalsOfParser {
  reader: InternalsOfReader;
  buffer: Buffer;
  bufferOffset: number;
  bufferLength: number;
  parse(chunk: Buffer, callback: unknown): void;
  handlePacket(offset: number, code: number, length: number, bytes: Buffer): unknown;
}

type Listener = (chunk: Buffer) => void;

interface InternalsOfConnection extends Connection {
  attachListeners(stream: { on(event: string, listener: Listener): unknown }): void;
}

/**
 * Changes pg for the whole process: a message that breaks the protocol or is too large, or an answer
 * that is too large, destroys its connection. Its queries reject with an error.
 */
export function guardProtocol(): void {
  const reader = BufferReader.prototype as unknown as InternalsOfReader;
  const parser = Parser.prototype as unknown as InternalsOfParser;
  const connection = Connection.prototype as InternalsOfConnection;
  const { string, cstring } = reader;
  const { parse, handlePacket } = parser;
  const { attachListeners } = connection;

  reader.string = function readStringInMessage(length) {
    if (length < 0 || this.offset + length > this.end) throw new RangeError('a text is too long');
    return string.call(this, length);
  };

  reader.cstring = function readCstringInMessage() {
    const value = cstring.call(this);
    if (this.offset > this.end) throw new RangeError('a text has no end');
    return value;
  };

  parser.handlePacket = function handleWholePacket(offset, code, length, bytes) {
    if (length < LENGTH_BYTES) throw new RangeError('a message is shorter than its length');
    this.reader.end = offset + length - LENGTH_BYTES;
    return handlePacket.call(this, offset, code, length, bytes);
  };

  parser.parse = function parseMessages(chunk, callback) {
    parse.call(this, chunk, callback);
    const isPending = this.bufferLength > LENGTH_BYTES;
    if (isPending && this.buffer.readUInt32BE(this.bufferOffset + 1) > MAX_MESSAGE_BYTES)
      throw new RangeError('a message is too long');
  };

  connection.attachListeners = function attachGuardedListeners(
    this: InternalsOfConnection,
    stream,
  ) {
    let answerBytes = 0;
    this.on('readyForQuery', () => (answerBytes = 0));
    // A connection that only listens is never ready for a query again.
    this.on(
      'notification',
      ({ length }: { length: number }) => (answerBytes -= CODE_BYTES + length),
    );
    const guard =
      (listener: Listener): Listener =>
      (chunk) => {
        try {
          answerBytes += chunk.length;
          if (answerBytes > MAX_ANSWER_BYTES) throw new RangeError('an answer is too long');
          listener(chunk);
        } catch (cause) {
          (stream as Duplex).destroy(new Error('PostgreSQL sent an invalid message.', { cause }));
        }
      };
    attachListeners.call(this, {
      on: (event, listener) => stream.on(event, event === 'data' ? guard(listener) : listener),
    });
  };
}
