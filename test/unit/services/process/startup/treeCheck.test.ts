import { expect, test } from '@jest/globals';
import { createTreeCheck } from '../../../../../services/process/startup/treeCheck.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../../../shared/lib/logger.ts';
import type { Comparison } from '../../../../../shared/transparency/kept/compareTree.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const FITS: Comparison = {
  compared: [],
  troubles: [],
  refusal: undefined,
  outvoted: [],
  isNew: false,
};

function recording() {
  const lines: string[] = [];
  const write = (_: object, message: string): void => void lines.push(message);
  return { lines, logger: { info: write, warn: write, error: write } as unknown as Logger };
}

/** Answers one after the other, the last one for ever. */
const answering = (...answers: (Comparison | Error)[]) => {
  let at = 0;
  return async (): Promise<Comparison> => {
    const answer = answers[Math.min(at, answers.length - 1)]!;
    at += 1;
    if (answer instanceof Error) throw answer;
    return answer;
  };
};

test('a start goes on at once where nothing contradicts, and logs what could not be asked', async () => {
  const { lines, logger } = recording();
  const troubles = [{ name: 'w', trouble: 'is away' }];
  const check = createTreeCheck(answering({ ...FITS, troubles }), logger);
  await check.part.prepare(new AbortController().signal);
  await check.passed;
  expect(check.part.trouble()).toBeUndefined();
  expect(lines).toEqual([expect.stringContaining('was not compared')]);
});

test('a start waits while the log may not be continued, says so once, and goes on after', async () => {
  const { lines, logger } = recording();
  const refused = { ...FITS, refusal: 'It was rolled back.' };
  const check = createTreeCheck(answering(refused, refused, FITS), logger);
  const prepared = check.part.prepare(new AbortController().signal);
  while (check.refusal() === undefined) await new Promise(setImmediate);
  expect(check.part.trouble()).toBe('It was rolled back.');
  await prepared;
  expect(check.refusal()).toBeUndefined();
  expect(lines).toEqual(['the start waits: It was rolled back.']);
});

test('a start waits for a store that is away, and ends with its signal', async () => {
  const { logger } = recording();
  const check = createTreeCheck(answering(storeUnavailableError('away'), FITS), logger);
  await check.part.prepare(new AbortController().signal);
  const stopped = createTreeCheck(answering({ ...FITS, refusal: 'No.' }), logger);
  const stop = new AbortController();
  const prepared = stopped.part.prepare(stop.signal);
  stop.abort(new Error('stopped'));
  await expect(prepared).rejects.toThrow('stopped');
});

test('witnesses that are outvoted hold no start, and are a doubt', async () => {
  const { lines, logger } = recording();
  const outvoted = ['The log does not fit: the witness w lies.', 'So does the witness v.'];
  const check = createTreeCheck(answering({ ...FITS, outvoted }), logger);
  await check.part.prepare(new AbortController().signal);
  expect(check.refusal()).toBeUndefined();
  expect(check.doubt()).toContain(outvoted.join(' '));
  expect(lines).toEqual([check.doubt()]);
});
