import { createBoundedBuffer, type ResponseMemory } from './boundedBuffer.ts';

const LF = 0x0a;
const CR = 0x0d;
const DATA = 'data:';

/** Parses the data of server-sent events as bytes arrive. */
export interface SseParser {
  /**
   * Calls `onData` with the data of each complete event until it returns `stop`. Returns `full` if
   * a line exceeds its limit, and `no_room` if all answers together exceed theirs.
   */
  add(chunk: Buffer, onData: (data: string) => 'on' | 'stop'): 'ok' | 'full' | 'no_room';
  release(): void;
}

function endOfLine(chunk: Buffer, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const cr = chunk.subarray(from, lf === -1 ? undefined : lf).indexOf(CR);
  return cr === -1 ? lf : from + cr;
}

/**
 * Reads the `data` fields of events as the HTML standard defines them. Lines end with LF, CR or
 * both. Memory is bounded by one line, or by the lines of one event.
 */
export function createSseParser(lineBytes: number, inProgress: ResponseMemory): SseParser {
  const line = createBoundedBuffer(lineBytes, inProgress);
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

  return {
    add(chunk, onData) {
      let from = 0;
      while (from < chunk.length) {
        if (afterCr && chunk[from] === LF) from += 1;
        afterCr = false;
        const end = endOfLine(chunk, from);
        const part = chunk.subarray(from, end === -1 ? undefined : end);
        const isWhole = end !== -1 && isEmpty;
        if (!isWhole && !line.add(part)) return line.isFull() ? 'full' : 'no_room';
        isEmpty = false;
        if (end === -1) break;
        afterCr = chunk[end] === CR;
        const text = isWhole ? part.toString() : line.text();
        line.release();
        isEmpty = true;
        from = end + 1;
        if ((data?.length ?? 0) + text.length > lineBytes) return 'full';
        const event = addLine(text);
        if (event !== undefined && onData(event) === 'stop') return 'ok';
      }
      return 'ok';
    },
    release: line.release,
  };
}
