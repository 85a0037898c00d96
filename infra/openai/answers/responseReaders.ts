import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { hasMoreValues } from '../../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { NoRoomForAnswer } from '../../../shared/ports/chatModel.ts';
import { createBoundedBuffer, type AnswerMemory } from './boundedBuffer.ts';

/** The result for the caller: JSON text, or the error. */
export type AnswerOrError = string | Error;

/** Reads the body of an answer as it arrives. */
export interface ResponseReader {
  /** An answer whose declared length exceeds this is not read. */
  mostBytes: number;
  /** Adds a part of the body. Returns the result once it needs no further parts. */
  add(chunk: Buffer): AnswerOrError | undefined;
  /** Returns the result at the end of the body. */
  end(): AnswerOrError;
  /** Releases its memory. */
  release(): void;
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

export const unusableAnswerError = (problem: string, cause?: unknown): TurnlogError =>
  new TurnlogError('model_error', `The model provider's answer ${problem}.`, { cause });

export const answerTooLongError = (): TurnlogError =>
  unusableAnswerError(`is longer than ${LIMITS.model.answerBytes.toLocaleString('en-US')} bytes`);

export const responseMemoryError = (): TurnlogError => new NoRoomForAnswer();

export const truncatedAnswerError = (): TurnlogError =>
  new TurnlogError('model_error', 'The model provider broke off in the middle of its answer.', {
    retriable: true,
  });

export const tooManyPartsError = (): TurnlogError => unusableAnswerError('has too many parts');

/**
 * Reads an answer that is one JSON text; of an error only the quoted beginning. A body that arrives in
 * one piece of the declared length is not copied.
 */
export function createWholeBodyReader(
  status: number,
  declaredBytes: number,
  memory: AnswerMemory,
): ResponseReader {
  const { answerBytes, errorBytes } = LIMITS.model;
  const body = createBoundedBuffer(isSuccess(status) ? answerBytes : errorBytes, memory);
  let whole: Buffer | undefined;
  return {
    // Of an error, the beginning is quoted.
    mostBytes: isSuccess(status) ? answerBytes : Infinity,
    add(chunk) {
      const isWhole = isSuccess(status) && chunk.length === declaredBytes;
      if (isWhole) whole = chunk;
      if (isWhole || body.add(chunk)) return undefined;
      if (!isSuccess(status)) return body.text();
      return body.isFull() ? answerTooLongError() : responseMemoryError();
    },
    end() {
      const text = whole?.toString('utf8') ?? body.text();
      return hasMoreValues(text, LIMITS.model.answerValues) ? tooManyPartsError() : text;
    },
    release: body.release,
  };
}
