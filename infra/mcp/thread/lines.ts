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
