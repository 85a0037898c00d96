import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { Inflow } from './inflow.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** A comma, an opening bracket and an opening brace each begin a JSON value. */
const VALUE_STARTS = new Set([0x2c, 0x5b, 0x7b]);

/** The memory that a parser takes for a line beside its text: lines may have a single character. */
const LINE_BYTES = 64;

/**
 * Measures the body of a response before it is parsed: its bytes, and the length and JSON values of
 * each message. A message of an event stream ends with an empty line; others end with the body.
 * Returns the memory that the message takes so far, or undefined once the server has sent too much.
 */
export function createMessageMeter(
  isStream: boolean,
  inflow: Inflow,
): (chunk: Uint8Array) => number | undefined {
  const { messageBytes, messageValues } = RUN_LIMITS.mcp;
  let bytes = 0;
  let values = 0;
  let lines = 0;
  let isInString = false;
  let isEscaped = false;
  let isEmptyLine = false;

  function check(): void {
    if (bytes > messageBytes) inflow.exceed('it sent a message that is too long');
    if (values > messageValues) inflow.exceed('it sent a message with too many values');
  }

  function endLine(): void {
    // JSON has no line feed within a string.
    isInString = false;
    isEscaped = false;
    if (isStream && isEmptyLine) {
      check();
      bytes = 0;
      values = 0;
      lines = 0;
      inflow.message();
    }
    isEmptyLine = true;
  }

  function count(byte: number): void {
    isEmptyLine = false;
    if (isEscaped) isEscaped = false;
    else if (byte === BACKSLASH) isEscaped = isInString;
    else if (byte === QUOTE) isInString = !isInString;
    else if (!isInString && VALUE_STARTS.has(byte)) values += 1;
  }

  return (chunk) => {
    for (const byte of chunk) {
      bytes += 1;
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) lines += 1;
      if (byte === LINE_FEED) endLine();
      else if (byte !== CARRIAGE_RETURN) count(byte);
    }
    check();
    if (!inflow.bytes(chunk.length)) return undefined;
    return bytes + (isStream ? lines * LINE_BYTES : 0);
  };
}
