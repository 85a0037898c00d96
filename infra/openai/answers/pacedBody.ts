import { runPaced, type Step } from '../../../shared/lib/concurrency/pacedSteps.ts';
import { unusableAnswerError, type AnswerOrError, type ResponseReader } from './responseReaders.ts';

/** The bytes that one step reads. */
const STEP_BYTES = 8_192;
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
  /** The steps of an account take turns with those of others. Without it, nothing waits. */
  account_id: string | undefined;
  flow: FlowControl;
  /** Called with the result, once, unless the body is cancelled. */
  done: (result: AnswerOrError) => void;
}

function runAtOnce(step: Step): void {
  while (step());
}

/**
 * Reads a body in short steps. A provider can send hundreds of thousands of tiny events a second:
 * unread data stays in its connection, except for 64 KiB.
 */
export function createPacedBody({ reader, account_id, flow, done }: PacedBodyOptions): PacedBody {
  const waiting: Buffer[] = [];
  const stepBytes = account_id === undefined ? Infinity : STEP_BYTES;
  let waitingBytes = 0;
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

  function readSome(): AnswerOrError | undefined {
    let result: AnswerOrError | undefined;
    for (let left = stepBytes; left > 0 && result === undefined && waiting.length > 0;) {
      const [chunk] = waiting as [Buffer];
      const piece = chunk.subarray(0, left);
      if (piece.length === chunk.length) waiting.shift();
      else waiting[0] = chunk.subarray(left);
      left -= piece.length;
      waitingBytes -= piece.length;
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
    if (account_id === undefined) runAtOnce(step);
    else runPaced(account_id, step);
  }

  return {
    add(chunk) {
      if (isOver) return;
      waiting.push(chunk);
      waitingBytes += chunk.length;
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
