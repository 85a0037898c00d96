const LINE_FEED = 10;

/**
 * Splits chunks into lines, without their ends. Each byte is copied once, however small the chunks
 * are. Once a line is longer than `maxBytes`, `onTooLong` is called and the rest is ignored.
 */
export function createLineSplitter(
  maxBytes: number,
  onTooLong: () => void,
): (chunk: Buffer) => Generator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let isTooLong = false;

  function add(part: Buffer): void {
    parts.push(part);
    bytes += part.length;
    if (bytes <= maxBytes || isTooLong) return;
    isTooLong = true;
    parts = [];
    onTooLong();
  }
  return function* split(chunk) {
    let start = 0;
    for (let end; !isTooLong && (end = chunk.indexOf(LINE_FEED, start)) >= 0; start = end + 1) {
      add(chunk.subarray(start, end));
      if (isTooLong) return;
      const line = Buffer.concat(parts);
      parts = [];
      bytes = 0;
      yield line;
    }
    if (!isTooLong && start < chunk.length) add(chunk.subarray(start));
  };
}

/**
 * Passes on whole lines. The parser of event streams searches an incomplete line anew with each
 * chunk, and a server may send single bytes.
 */
export function createLineBuffer(): (chunk: Uint8Array) => Uint8Array | undefined {
  let parts: Uint8Array[] = [];
  return (chunk) => {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) return void parts.push(chunk);
    const lines = Buffer.concat([...parts, chunk.subarray(0, end)]);
    parts = [chunk.subarray(end)];
    return lines;
  };
}
