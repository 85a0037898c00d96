import { createBoundedBuffer, type AnswerMemory, type BoundedBuffer } from './boundedBuffer.ts';

const LF = 0x0a;
const CR = 0x0d;
const DATA = 'data:';
const BYTE_ORDER_MARK = '\uFEFF';

/** Parses the data of server-sent events as bytes arrive. */
interface SseParser {
  /**
   * Calls `onData` with the data of each complete event until it returns `stop`. Returns `full` if
   * a line or an event exceeds its limit, and `no_room` if all answers together exceed theirs.
   */
  add(chunk: Buffer, onData: (data: string) => 'on' | 'stop'): Status;
  release(): void;
}

type Status = 'ok' | 'full' | 'no_room';

/** The index after the first line of a chunk that has the end of at least one line. */
function endOfFirstLine(chunk: Buffer): number {
  const lf = chunk.indexOf(LF);
  const cr = chunk.subarray(0, lf === -1 ? undefined : lf).indexOf(CR);
  return cr === -1 ? lf : cr;
}

function addTo(buffer: BoundedBuffer, bytes: Buffer): Status {
  if (buffer.add(bytes)) return 'ok';
  return buffer.isFull() ? 'full' : 'no_room';
}

/** The lines of a text that ends with the end of a line. */
const linesOf = (text: string): string[] =>
  text.split(text.includes('\r') ? /\r\n|[\r\n]/ : '\n').slice(0, -1);

/**
 * Reads the `data` fields of events as the HTML standard defines them. Lines end with LF, CR or
 * both. Memory is bounded by one line and the data of one event.
 */
export function createSseParser(lineBytes: number, memory: AnswerMemory): SseParser {
  const line = createBoundedBuffer(lineBytes, memory);
  /** True while no partial line is buffered: most lines arrive complete. */
  let isEmpty = true;
  /** True until the first line, which may have a byte order mark. */
  let isStart = true;
  let afterCr = false;
  /** The data of the event in earlier chunks, each line with its end. */
  const earlier = createBoundedBuffer(lineBytes, memory);
  let hasEarlier = false;
  /** The data of the event in this chunk. */
  let data: string | undefined;

  function addData(text: string): void {
    if (!text.startsWith(DATA)) return;
    const value = text.slice(text[DATA.length] === ' ' ? DATA.length + 1 : DATA.length);
    data = data === undefined ? value : `${data}\n${value}`;
  }

  /** Moves the data of an event into bytes: a string of a million lines would take 32 bytes for each. */
  function moveData(): Status {
    if (data === undefined) return 'ok';
    const bytes = Buffer.from(`${data}\n`);
    data = undefined;
    hasEarlier = true;
    return addTo(earlier, bytes);
  }

  /** Takes the data of an event that has ended. */
  function takeData(): string | undefined {
    const eventData = hasEarlier ? earlier.text().slice(0, -1) : data;
    if (hasEarlier) earlier.release();
    hasEarlier = false;
    data = undefined;
    return eventData;
  }

  /** Buffers a part of a line. */
  function addPart(part: Buffer): Status {
    if (part.length === 0) return 'ok';
    isEmpty = false;
    return addTo(line, part);
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
      for (const whole of linesOf(takePart() + chunk.toString('utf8', first, end + 1))) {
        const text = isStart && whole.startsWith(BYTE_ORDER_MARK) ? whole.slice(1) : whole;
        isStart = false;
        if ((data?.length ?? 0) + text.length > lineBytes) return 'full';
        if (text !== '') {
          addData(text);
          continue;
        }
        const moved = hasEarlier ? moveData() : 'ok';
        if (moved !== 'ok') return moved;
        const event = takeData();
        if (event !== undefined && onData(event) === 'stop') return 'ok';
      }
      const moved = moveData();
      return moved === 'ok' ? addPart(chunk.subarray(end + 1)) : moved;
    },
    release() {
      line.release();
      earlier.release();
    },
  };
}
