import type { Dispatcher } from 'undici';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import type { ModelCaller } from '../../shared/ports/chatModel.ts';
import { createAnswerMemory, type HoldableMemory } from './answers/boundedBuffer.ts';
import { createPacedBody, type PacedBody } from './answers/pacedBody.ts';
import {
  truncatedAnswerError,
  createWholeBodyReader,
  isSuccess,
  answerTooLongError,
  responseMemoryError,
  unusableAnswerError,
  type AnswerOrError,
} from './answers/responseReaders.ts';
import { createStreamedAnswerReader } from './answers/streamedAnswer.ts';

/** A server that does not end its stream after the last event is disconnected after this time. */
const CONNECTION_CLOSE_GRACE_MS = 1_000;

/** Connections to providers, and the memory of the answers that are being read. */
export interface Connection {
  agent: Dispatcher;
  ledger: MemoryLedger;
}

/** A request without its body. Its headers ask for no compression. */
export interface RequestHead {
  origin: string;
  path: string;
  method: string;
  /** Names and values in turns. */
  headers: readonly string[];
}

/** A request with its body, which is JSON. */
export type SentRequest = RequestHead & { body: Buffer | null };

/** Headers by their names in lower case. */
export type RawHeaders = Record<string, string | string[] | undefined>;

export interface ProviderReply {
  status: number;
  headers: RawHeaders;
  /** The text of a streamed answer is that of one completion: it has arrived as a whole. */
  isStream: boolean;
  /** The whole body, or why it could not be read. */
  body: AnswerOrError;
}

interface AttemptOptions {
  /** The account of the call, and what receives the text of a streamed answer as it arrives. */
  caller: ModelCaller;
  signal?: AbortSignal | null | undefined;
  /** The time limit until the last byte of the answer, in milliseconds. */
  timeoutMs?: number;
}

export const replyHeader = (headers: RawHeaders, name: string): string | undefined => {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

const timeoutError = (): TurnlogError =>
  new TurnlogError('model_timeout', 'The model provider did not answer in time.', {
    retriable: true,
  });

const isEventStream = (headers: RawHeaders): boolean =>
  replyHeader(headers, 'content-type')?.trim().toLowerCase().startsWith('text/event-stream') ??
  false;

/** The values that servers send for a body without a content coding. */
const NO_CODINGS = ['', 'identity', 'none'];

const isEncoded = (headers: RawHeaders): boolean =>
  (replyHeader(headers, 'content-encoding') ?? '')
    .split(',')
    .some((coding) => !NO_CODINGS.includes(coding.trim().toLowerCase()));

/** The most bytes that the texts of an answer take: two per character beyond ASCII. */
const heapBytesOf = (json: string): number =>
  Buffer.byteLength(json) === json.length ? json.length : 2 * json.length;

/**
 * Sends one request to a provider, and resolves after it has read the whole body; of an error
 * response, only the part that is used. Rejects if the connection fails before the first byte of an
 * answer. An attempt that times out, is aborted or breaks off during its answer, which the model
 * may have processed and which is billed, resolves with a reply whose body is the error. Redirects
 * are not followed. The caller receives the text of a streamed answer as it arrives, and takes over
 * the memory of an answer.
 */
export function sendAttempt(
  { agent, ledger }: Connection,
  request: SentRequest,
  { caller, signal, timeoutMs }: AttemptOptions,
): Promise<ProviderReply> {
  return new Promise((resolve, reject) => {
    let body: PacedBody | undefined;
    let memory: HoldableMemory | undefined;
    let status = 200;
    let headers: RawHeaders = {};
    let isStream = false;
    let controller: Dispatcher.DispatchController | undefined;
    let closeTimer: NodeJS.Timeout | undefined;
    let hasEnded = false;
    let hasGivenUp = false;
    const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs);
    function stopWaiting(): void {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    }
    /** Leaves the memory of an answer to the caller, before the reader releases its own. */
    function held(result: AnswerOrError): AnswerOrError {
      if (!caller.hold || typeof result !== 'string' || !isSuccess(status)) return result;
      const release = memory?.hold(heapBytesOf(result));
      if (!release) return responseMemoryError();
      caller.hold(release);
      return result;
    }
    function reply(result: AnswerOrError): void {
      stopWaiting();
      const heldBody = held(result);
      body?.cancel();
      resolve({ status, headers, isStream, body: heldBody });
    }
    function abort(): void {
      controller?.abort(new Error('no more is read'));
    }
    function stop(result: AnswerOrError): void {
      reply(result);
      abort();
    }
    function giveUp(): void {
      hasGivenUp = true;
      stop(timeoutError());
    }
    function receive(result: AnswerOrError): void {
      if (hasEnded) return reply(result);
      if (result instanceof Error || !isSuccess(status)) return stop(result);
      // If the server ends its stream now, its connection is kept for the next call.
      reply(result);
      closeTimer = setTimeout(abort, CONNECTION_CLOSE_GRACE_MS).unref();
    }
    function end(result?: AnswerOrError): void {
      hasEnded = true;
      clearTimeout(closeTimer);
      body?.end(result);
    }
    // A listener on an already aborted signal is never called.
    if (signal?.aborted) giveUp();
    else signal?.addEventListener('abort', giveUp, { once: true });
    agent.dispatch(request as Dispatcher.DispatchOptions, {
      onRequestStart(started) {
        controller = started;
        if (hasGivenUp) started.abort(new Error('given up before it was sent'));
      },
      onResponseStart(flow, statusCode, rawHeaders) {
        // An informational response, such as early hints.
        if (statusCode < 200) return;
        status = statusCode;
        headers = rawHeaders;
        const { account_id, onDelta, onReasoning } = caller;
        memory = createAnswerMemory(ledger, account_id);
        isStream = onDelta !== undefined && isSuccess(status) && isEventStream(headers);
        const declaredBytes = Number(replyHeader(headers, 'content-length'));
        const reader =
          isStream && onDelta
            ? createStreamedAnswerReader({ onText: onDelta, onReasoning }, memory)
            : createWholeBodyReader(status, declaredBytes, memory);
        body = createPacedBody({ reader, account_id, isStream, flow, done: receive });
        if (isSuccess(status) && isEncoded(headers))
          stop(unusableAnswerError('is compressed, which was not asked for'));
        else if (declaredBytes > reader.mostBytes) stop(answerTooLongError());
      },
      onResponseData(_controller, chunk) {
        body?.add(chunk);
      },
      onResponseEnd() {
        end();
      },
      onResponseError(_controller, error) {
        if (body) return end(truncatedAnswerError());
        stopWaiting();
        reject(error);
      },
    });
  });
}
