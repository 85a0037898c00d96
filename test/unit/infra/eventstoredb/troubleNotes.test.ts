import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { NO_ANSWER } from '../../../../infra/eventstoredb/trouble.ts';
import { createTroubleNotes } from '../../../../infra/eventstoredb/troubleNotes.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const AGAIN = 'the event store can be used again';

function notesWithLines() {
  const lines: string[] = [];
  const notes = createTroubleNotes({ warn: (_, message) => void lines.push(message) });
  return { notes, lines };
}

test('a trouble with a cause is logged at once, and so is its end', () => {
  const { notes, lines } = notesWithLines();
  notes.set('It refuses connections.');
  notes.set('It refuses connections.');
  notes.set(undefined);
  notes.set(undefined);
  expect(lines).toEqual(['It refuses connections.', AGAIN]);
});

test('that no answer has come yet is known at once, and logged only where it lasts', () => {
  const { notes, lines } = notesWithLines();
  notes.set(NO_ANSWER);
  expect(notes.get()).toBe(NO_ANSWER);
  jest.advanceTimersByTime(900);
  notes.set(NO_ANSWER);
  notes.set(undefined);
  expect(lines).toEqual([]);
  for (let look = 0; look < 4; look += 1) {
    notes.set(NO_ANSWER);
    jest.advanceTimersByTime(400);
  }
  notes.set(undefined);
  expect(lines).toEqual([NO_ANSWER, AGAIN]);
});
