import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ResponseMemory } from './boundedBuffer.ts';
import { parseChunk, type Chunk, type Delta } from './chunk.ts';
import { createSseParser } from './sseParser.ts';
import { createTextAccumulator, type TextAccumulator } from './textAccumulator.ts';
import { FINISH_REASONS } from './finishReasons.ts';
import {
  truncatedAnswerError,
  responseMemoryError,
  answerTooLongError,
  tooManyPartsError,
  unusableAnswerError,
  type ResponseReader,
  type AnswerOrError,
} from './responseReaders.ts';

/** A part of a tool call, as a chunk of a stream has it. */
type CallPart = NonNullable<Delta['tool_calls']>[number];

interface Call {
  id: string;
  name: string;
  arguments: TextAccumulator;
}

/** The tool calls of an answer that comes in parts. */
interface StreamedCalls {
  /** False where they are too many, or too long. */
  add(part: CallPart): boolean;
  /** The calls, as a chat completion's message has them. */
  calls(): object[];
  release(): void;
}

const { callIdChars, functionNameChars, argumentsChars } = LIMITS.model;

/**
 * Puts tool calls together: parts of one call have one index; where a provider sends none, a part
 * with another id begins a call.
 */
function createStreamedCalls(inProgress: ResponseMemory): StreamedCalls {
  const calls = new Map<number, Call>();
  let latest = -1;

  function callOf({ index, id }: CallPart): Call | undefined {
    const begins = id && calls.get(latest)?.id !== id;
    latest = index ?? (begins || latest < 0 ? calls.size : latest);
    const known = calls.get(latest);
    if (known) return known;
    // One more than a turn may have: whoever counts them says so.
    if (calls.size > LIMITS.run.toolCalls) return undefined;
    // UTF-8 takes three bytes for a character at the most; a pair is four for two.
    const made = {
      id: '',
      name: '',
      arguments: createTextAccumulator(inProgress, 3 * argumentsChars),
    };
    calls.set(latest, made);
    return made;
  }

  return {
    add(part) {
      const call = callOf(part);
      if (!call) return false;
      call.id ||= part.id ?? '';
      call.name += part.function?.name ?? '';
      if (call.id.length > callIdChars || call.name.length > functionNameChars) return false;
      return call.arguments.add(part.function?.arguments ?? '') !== undefined;
    },
    calls: () =>
      [...calls].map(([, call]) => {
        call.arguments.rest();
        return {
          id: call.id,
          function: { name: call.name, arguments: call.arguments.text() },
        };
      }),
    release: () => calls.forEach((call) => call.arguments.release()),
  };
}

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
  let said: AnswerOrError | undefined;

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

  function take(data: string): AnswerOrError | undefined {
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
