import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../shared/limits.ts';
import { NoRoomForAnswer } from '../../shared/ports/chatModel.ts';
import { createBody, type AnswersInProgress } from './body.ts';

/** What the caller is given of an answer: JSON text, or why there is none. */
export type Said = string | Error;

/** Reads the body of an answer as it comes in. */
export interface Reader {
  /** Of an answer that says that it is longer, nothing is read. */
  mostBytes: number;
  /** Takes a part; gives what the caller is told where no more of it is needed. */
  add(chunk: Buffer): Said | undefined;
  /** What the caller is told at the end of the body. */
  end(): Said;
  /** Gives back its share of the answers in progress. */
  release(): void;
}

export const isGood = (status: number): boolean => status >= 200 && status < 300;

export const unusable = (why: string): TurnlogError =>
  new TurnlogError('model_error', `The model provider's answer ${why}.`);

export const tooLong = (): TurnlogError =>
  unusable(`is longer than ${LIMITS.model.answerBytes.toLocaleString('en-US')} bytes`);

export const noRoom = (): TurnlogError => new NoRoomForAnswer();

export const brokenOff = (): TurnlogError =>
  new TurnlogError('model_error', 'The model provider broke off in the middle of its answer.', {
    retriable: true,
  });

export const tooManyParts = (): TurnlogError => unusable('has too many parts');

/** Reads an answer that comes as one JSON text; of an error no more than is looked at. */
export function createWholeReader(status: number, inProgress: AnswersInProgress): Reader {
  const { answerBytes, errorBytes } = LIMITS.model;
  const body = createBody(isGood(status) ? answerBytes : errorBytes, inProgress);
  return {
    // Of an error, the beginning is quoted.
    mostBytes: isGood(status) ? answerBytes : Infinity,
    add(chunk) {
      if (body.add(chunk)) return undefined;
      if (!isGood(status)) return body.text();
      return body.isFull() ? tooLong() : noRoom();
    },
    end() {
      const text = body.text();
      return hasMoreValues(text, LIMITS.model.answerValues) ? tooManyParts() : text;
    },
    release: body.release,
  };
}
