import { runPaced, type Step } from '../../../shared/lib/concurrency/pacedSteps.ts';
import { unusableAnswerError, type AnswerOrError, type ResponseReader } from './responseReaders.ts';

/** The bytes that one step reads. */
const STEP_BYTES = 8_192;
/** The minimum that a chunk counts: a provider may send one byte in each. */
const CHUNK_BYTES = 64;
/**
 * From this many bytes on, the provider has to wait until all of them are read. That is what a
 * socket buffers: pausing more often would copy that buffer again and again.
 */
const PAUSE_BYTES = 65_536;

/** Holds the provider back. */
interface FlowControl {
  pause(): void;
  resume(): void;
}

/** A body that is read in steps as it arrives. */
export interface PacedBody {
  add(chunk: Buffer): void;
  /** The body has ended, and is read to its end unless a result is given. */
  end(result?: AnswerOrError): void;
  /** Reads no more of it, and releases its memory. The connection has to be ended. */
  cancel(): void;
}

interface PacedBodyOptions {
  reader: ResponseReader;
  /** Its steps take turns with those of other accounts. */
  account_id: string;
  /** Another body is read as it arrives, until too many small chunks of it have arrived. */
  isStream: boolean;
  flow: FlowControl;
  /** Called with the result, once, unless the body is cancelled. */
  done: (result: AnswerOrError) => void;
}

const costOf = ({ length }: Buffer): number => Math.max(length, CHUNK_BYTES);

function runAtOnce(step: Step): void {
  while (step());
}

/**
 * Reads a body in short steps. A provider can send hundreds of thousands of tiny events a second:
 * unread data stays in its connection, except for 64 KiB.
 */
export function createPacedBody({
  reader,
  account_id,
  isStream,
  flow,
  done,
}: PacedBodyOptions): PacedBody {
  const waiting: Buffer[] = [];
  let isPaced = isStream;
  let waitingBytes = 0;
  /** The bytes that small chunks have counted in addition to their own. */
  let addedBytes = 0;
  let isScheduled = false;
  let atEnd: (() => AnswerOrError) | undefined;
  let isOver = false;

  function cancel(): void {
    isOver = true;
    reader.release();
    waiting.length = 0;
    waitingBytes = 0;
  }

  function finish(result: AnswerOrError): void {
    isOver = true;
    done(result);
    cancel();
  }

  function putBack(rest: Buffer): void {
    waiting.unshift(rest);
    waitingBytes += costOf(rest);
  }

  function readSome(): AnswerOrError | undefined {
    let result: AnswerOrError | undefined;
    let remainingBytes = isPaced ? STEP_BYTES : Infinity;
    while (remainingBytes > 0 && result === undefined && waiting.length > 0) {
      const chunk = waiting.shift()!;
      const piece = chunk.subarray(0, remainingBytes);
      waitingBytes -= costOf(chunk);
      if (piece.length < chunk.length) putBack(chunk.subarray(remainingBytes));
      remainingBytes -= costOf(piece);
      result = reader.add(piece);
    }
    return result;
  }

  /** The result, once it is known. A step runs in no call that could take an exception. */
  function read(): AnswerOrError | undefined {
    try {
      return readSome() ?? (atEnd && waiting.length === 0 ? atEnd() : undefined);
    } catch (error) {
      return unusableAnswerError('can not be read', error);
    }
  }

  function step(): boolean {
    const result = read();
    if (isOver) return false;
    if (result !== undefined) finish(result);
    if (waiting.length === 0) flow.resume();
    isScheduled = waiting.length > 0;
    return isScheduled;
  }

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    if (isPaced) runPaced(account_id, step);
    else runAtOnce(step);
  }

  return {
    add(chunk) {
      if (isOver) return;
      waiting.push(chunk);
      waitingBytes += costOf(chunk);
      addedBytes += costOf(chunk) - chunk.length;
      isPaced ||= addedBytes >= PAUSE_BYTES;
      schedule();
      if (waitingBytes >= PAUSE_BYTES) flow.pause();
    },
    end(result) {
      if (isOver) return;
      atEnd = () => result ?? reader.end();
      schedule();
    },
    cancel,
  };
}
