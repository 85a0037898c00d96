import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import {
  createTroubleLog,
  NO_ANSWER,
} from '../../../../../infra/eventstoredb/connection/troubleLog.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const RECOVERED = 'the event store can be used again';

function troubleLogWithLines() {
  const lines: string[] = [];
  const troubleLog = createTroubleLog({ warn: (_, message) => void lines.push(message) });
  return { troubleLog, lines };
}

test('logs a trouble with a cause, and its end, at once', () => {
  const { troubleLog, lines } = troubleLogWithLines();
  troubleLog.set('It refuses connections.');
  troubleLog.set('It refuses connections.');
  troubleLog.set(undefined);
  troubleLog.set(undefined);
  expect(lines).toEqual(['It refuses connections.', RECOVERED]);
});

test('reports a missing answer at once, but logs it only when it persists', () => {
  const { troubleLog, lines } = troubleLogWithLines();
  troubleLog.set(NO_ANSWER);
  expect(troubleLog.current()).toBe(NO_ANSWER);
  jest.advanceTimersByTime(900);
  troubleLog.set(NO_ANSWER);
  troubleLog.set(undefined);
  expect(lines).toEqual([]);
  for (let round = 0; round < 4; round += 1) {
    troubleLog.set(NO_ANSWER);
    jest.advanceTimersByTime(400);
  }
  troubleLog.set(undefined);
  expect(lines).toEqual([NO_ANSWER, RECOVERED]);
});
