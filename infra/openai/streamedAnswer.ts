import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ResponseMemory } from './boundedBuffer.ts';
import { parseChunk, type Chunk, type Delta } from './chunk.ts';
import { createSseParser } from './sseParser.ts';
import { createTextAccumulator } from './textAccumulator.ts';
import { FINISH_REASONS } from './finishReasons.ts';
import {
  truncatedAnswerError,
  responseMemoryError,
  answerTooLongError,
  tooManyPartsError,
  unusableAnswerError,
  type ResponseReader,
  type ReadResult,
} from './responseReaders.ts';
import { createStreamedCalls } from './streamedCalls.ts';

/** The beginnings of what names an answer: what is longer is cut where it is read. */
const LABEL = LIMITS.model.labelChars;

function streamError(error: unknown): TurnlogError {
  const code = (error as { code?: unknown } | undefined)?.code;
  const why = FINISH_REASONS.get(code);
  return new TurnlogError(
    'model_error',
    `The model provider broke off its answer with an error${why === undefined ? '' : `: ${why}`}.`,
    { retriable: true },
  );
}

/**
 * Reads an answer that comes as a stream of chunks, tells `onText` of its text as it comes, and makes
 * the chat completion of it that the provider would have sent at once. Of a model that refuses, the
 * refusal is the text. The bounds are those of an answer in one piece; the chunks around the text may
 * take more, since nothing is kept of them. A stream that ends before its end was said is cut.
 */
export function createStreamedAnswerReader(
  onText: (text: string) => void,
  inProgress: ResponseMemory,
): ResponseReader {
  const lines = createSseParser(LIMITS.model.answerBytes, inProgress);
  const text = createTextAccumulator(inProgress);
  const calls = createStreamedCalls(inProgress);
  let bytes = 0;
  let kind: 'content' | 'refusal' | undefined;
  let id = '';
  let model = '';
  let finish: string | undefined;
  let usage: unknown;
  let said: ReadResult | undefined;

  const show = (shown: string): void => {
    if (shown !== '') onText(shown);
  };

  function takeText(delta: Delta): Error | undefined {
    kind ??= delta.content ? 'content' : delta.refusal ? 'refusal' : undefined;
    const piece = kind && delta[kind];
    if (!piece) return undefined;
    const shown = text.add(piece);
    if (shown === undefined) return text.isFull() ? answerTooLongError() : responseMemoryError();
    show(shown);
    return undefined;
  }

  function takeChunk(chunk: Chunk): Error | undefined {
    if (chunk.error !== undefined && chunk.error !== null) return streamError(chunk.error);
    id ||= chunk.id?.slice(0, LABEL) ?? '';
    model ||= chunk.model?.slice(0, LABEL) ?? '';
    usage = chunk.usage ?? usage;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    finish = choice?.finish_reason?.slice(0, LABEL) ?? finish;
    for (const part of choice?.delta?.tool_calls ?? [])
      if (!calls.add(part)) return tooManyPartsError();
    return choice?.delta ? takeText(choice.delta) : undefined;
  }

  function whole(): string {
    show(text.rest());
    const message = { content: text.text(), tool_calls: calls.calls() };
    const choices = [{ finish_reason: finish, message }];
    return JSON.stringify({ id, model, choices, usage });
  }

  function take(data: string): ReadResult | undefined {
    if (data === '[DONE]') return whole();
    if (hasMoreValues(data, LIMITS.model.answerValues)) return tooManyPartsError();
    const chunk = parseChunk(data);
    return chunk
      ? takeChunk(chunk)
      : unusableAnswerError('has a part that is no part of a chat completion');
  }

  return {
    mostBytes: LIMITS.model.streamBytes,
    add(chunk) {
      bytes += chunk.length;
      if (bytes > LIMITS.model.streamBytes) return answerTooLongError();
      const read = lines.add(chunk, (data) => {
        said = take(data);
        return said === undefined ? 'on' : 'stop';
      });
      if (read === 'ok') return said;
      return read === 'full' ? answerTooLongError() : responseMemoryError();
    },
    end: () => said ?? (finish === undefined ? truncatedAnswerError() : whole()),
    release() {
      lines.release();
      text.release();
      calls.release();
    },
  };
}
