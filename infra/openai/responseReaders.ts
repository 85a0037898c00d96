import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';
import { NoRoomForAnswer } from '../../shared/ports/chatModel.ts';
import { createBoundedBuffer, type ResponseMemory } from './boundedBuffer.ts';

/** What the caller is given of an answer: JSON text, or why there is none. */
export type ReadResult = string | Error;

/** Reads the body of an answer as it comes in. */
export interface ResponseReader {
  /** Of an answer that says that it is longer, nothing is read. */
  mostBytes: number;
  /** Takes a part; gives what the caller is told where no more of it is needed. */
  add(chunk: Buffer): ReadResult | undefined;
  /** What the caller is told at the end of the body. */
  end(): ReadResult;
  /** Gives back its share of the answers in progress. */
  release(): void;
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

export const unusableAnswerError = (why: string): TurnlogError =>
  new TurnlogError('model_error', `The model provider's answer ${why}.`);

export const answerTooLongError = (): TurnlogError =>
  unusableAnswerError(`is longer than ${LIMITS.model.answerBytes.toLocaleString('en-US')} bytes`);

export const responseMemoryError = (): TurnlogError => new NoRoomForAnswer();

export const truncatedAnswerError = (): TurnlogError =>
  new TurnlogError('model_error', 'The model provider broke off in the middle of its answer.', {
    retriable: true,
  });

export const tooManyPartsError = (): TurnlogError => unusableAnswerError('has too many parts');

/** Reads an answer that comes as one JSON text; of an error no more than is looked at. */
export function createWholeBodyReader(status: number, inProgress: ResponseMemory): ResponseReader {
  const { answerBytes, errorBytes } = LIMITS.model;
  const body = createBoundedBuffer(isSuccess(status) ? answerBytes : errorBytes, inProgress);
  return {
    // Of an error, the beginning is quoted.
    mostBytes: isSuccess(status) ? answerBytes : Infinity,
    add(chunk) {
      if (body.add(chunk)) return undefined;
      if (!isSuccess(status)) return body.text();
      return body.isFull() ? answerTooLongError() : responseMemoryError();
    },
    end() {
      const text = body.text();
      return hasMoreValues(text, LIMITS.model.answerValues) ? tooManyPartsError() : text;
    },
    release: body.release,
  };
}
