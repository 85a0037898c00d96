const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** The beginning of a line, in one piece of memory however small the chunks are. */
function createPartialLine() {
  let held = Buffer.alloc(0);
  let length = 0;
  return {
    length: () => length,
    add(chunk: Uint8Array): void {
      if (length + chunk.length > held.length) {
        const larger = Buffer.allocUnsafeSlow(2 * (length + chunk.length));
        held.copy(larger, 0, 0, length);
        held = larger;
      }
      held.set(chunk, length);
      length += chunk.length;
    },
    /** The line with its last chunk. */
    end(chunk: Uint8Array): Buffer {
      const line = Buffer.concat([held.subarray(0, length), chunk]);
      held = Buffer.alloc(0);
      length = 0;
      return line;
    },
  };
}

/**
 * Splits chunks into lines, without their ends. Each byte is copied a few times, however small the
 * chunks are. Once a line is longer than `maxBytes`, `onTooLong` is called and the rest is ignored.
 */
export function createLineSplitter(maxBytes: number, onTooLong: () => void) {
  const partial = createPartialLine();
  let isTooLong = false;

  function fits(part: Buffer): boolean {
    if (partial.length() + part.length <= maxBytes) return true;
    isTooLong = true;
    partial.end(part);
    onTooLong();
    return false;
  }
  return {
    *split(chunk: Buffer): Generator<Buffer> {
      let start = 0;
      for (let end; !isTooLong && (end = chunk.indexOf(LINE_FEED, start)) >= 0; start = end + 1) {
        const part = chunk.subarray(start, end);
        if (!fits(part)) return;
        yield partial.end(part);
      }
      const rest = chunk.subarray(start);
      if (!isTooLong && rest.length > 0 && fits(rest)) partial.add(rest);
    },
    /** The length of the line that has not ended. */
    unfinishedBytes: partial.length,
  };
}

/**
 * Passes on whole lines of an event stream, which end with line feeds or carriage returns. The parser
 * of event streams searches an incomplete line anew with each chunk, and a server may send single bytes.
 */
export function createLineBuffer(): (chunk: Uint8Array) => Uint8Array | undefined {
  const partial = createPartialLine();
  return (chunk) => {
    const end = Math.max(chunk.lastIndexOf(LINE_FEED), chunk.lastIndexOf(CARRIAGE_RETURN)) + 1;
    if (end === 0) {
      partial.add(chunk);
      return undefined;
    }
    const lines = partial.end(chunk.subarray(0, end));
    partial.add(chunk.subarray(end));
    return lines;
  };
}
