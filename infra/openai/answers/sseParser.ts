import { createBoundedBuffer, type AnswerMemory } from './boundedBuffer.ts';

const LF = 0x0a;
const CR = 0x0d;
const DATA = 'data:';

/** Parses the data of server-sent events as bytes arrive. */
interface SseParser {
  /**
   * Calls `onData` with the data of each complete event until it returns `stop`. Returns `full` if
   * a line exceeds its limit, and `no_room` if all answers together exceed theirs.
   */
  add(chunk: Buffer, onData: (data: string) => 'on' | 'stop'): 'ok' | 'full' | 'no_room';
  release(): void;
}

/** Where the first line of a chunk ends, which has the end of at least one line. */
function endOfFirstLine(chunk: Buffer): number {
  const lf = chunk.indexOf(LF);
  const cr = chunk.subarray(0, lf === -1 ? undefined : lf).indexOf(CR);
  return cr === -1 ? lf : cr;
}

/** The lines of a text that ends with the end of a line. */
const linesOf = (text: string): string[] =>
  text.split(text.includes('\r') ? /\r\n|[\r\n]/ : '\n').slice(0, -1);

/**
 * Reads the `data` fields of events as the HTML standard defines them. Lines end with LF, CR or
 * both. Memory is bounded by one line, or by the lines of one event.
 */
export function createSseParser(lineBytes: number, memory: AnswerMemory): SseParser {
  const line = createBoundedBuffer(lineBytes, memory);
  /** True while no partial line is buffered: most lines arrive complete. */
  let isEmpty = true;
  let afterCr = false;
  let data: string | undefined;

  /** Returns the data of the event that an empty line ends. */
  function addLine(text: string): string | undefined {
    if (text === '') {
      const eventData = data;
      data = undefined;
      return eventData;
    }
    if (text.startsWith(DATA)) {
      const value = text.slice(text[DATA.length] === ' ' ? DATA.length + 1 : DATA.length);
      data = data === undefined ? value : `${data}\n${value}`;
    }
    return undefined;
  }

  /** Buffers a part of a line. */
  function addPart(part: Buffer): 'ok' | 'full' | 'no_room' {
    if (part.length === 0) return 'ok';
    isEmpty = false;
    if (line.add(part)) return 'ok';
    return line.isFull() ? 'full' : 'no_room';
  }

  /** Takes the buffered part of a line. */
  function takePart(): string {
    const text = isEmpty ? '' : line.text();
    line.release();
    isEmpty = true;
    return text;
  }

  return {
    add(bytes, onData) {
      const chunk = afterCr && bytes[0] === LF ? bytes.subarray(1) : bytes;
      const end = Math.max(chunk.lastIndexOf(LF), chunk.lastIndexOf(CR));
      afterCr = chunk.at(-1) === CR || (afterCr && bytes.length === 0);
      if (end === -1) return addPart(chunk);
      const first = isEmpty ? 0 : endOfFirstLine(chunk);
      const status = addPart(chunk.subarray(0, first));
      if (status !== 'ok') return status;
      // Decoding many lines at once takes a fraction of the time of decoding each.
      for (const text of linesOf(takePart() + chunk.toString('utf8', first, end + 1))) {
        if ((data?.length ?? 0) + text.length > lineBytes) return 'full';
        const event = addLine(text);
        if (event !== undefined && onData(event) === 'stop') return 'ok';
      }
      return addPart(chunk.subarray(end + 1));
    },
    release: line.release,
  };
}
