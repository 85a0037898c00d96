import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createHeldAnswers } from '../../../../../shared/runs/model/heldAnswers.ts';
import type { OpenRun, RunContext } from '../../../../../shared/runs/context.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import {
  requireResponseFormat,
  ResponseFormatError,
} from '../../../../../shared/runs/model/modelLoop.ts';

const JSON_OBJECT = { type: 'json_object' as const };

function check(
  misfitOf: () => Promise<string | undefined>,
  output: string,
  signal = new AbortController().signal,
  held = createHeldAnswers(),
) {
  const context = { catalogue: { schemas: { misfitOf } } } as unknown as RunContext;
  const run = {
    settings: { response_format: JSON_OBJECT },
    request: { actor: { account_id: 'a' } },
    held,
  } as unknown as OpenRun;
  return requireResponseFormat(context, run, output, signal).then(
    () => undefined,
    (error: unknown) => error,
  );
}

test('an answer that does not fit keeps its text', async () => {
  const error = await check(async () => 'is not JSON', 'words');
  expect(error).toBeInstanceOf(ResponseFormatError);
  expect(error).toMatchObject({ code: 'model_error', retriable: false, output: 'words' });
});

test('an answer that does not fit, and fits no event, is told without its text', async () => {
  const long = '\n'.repeat(LIMITS.http.jsonTextBytes / 2);
  expect(await check(async () => 'is not JSON', long)).toMatchObject({ output: undefined });
});

test('an answer that could not be checked in time is kept as one that does not fit', async () => {
  const late = () => Promise.reject(new TurnlogError('rate_limited', 'wait'));
  expect(await check(late, '{}')).toMatchObject({ code: 'model_error', output: '{}' });
});

test('a run does not wait for a check beyond its end, but the memory of the answer does', async () => {
  const reason = new Error('the time is over');
  const held = createHeldAnswers();
  let isReleased = false;
  held.hold(() => (isReleased = true));
  const { promise, resolve } = Promise.withResolvers<undefined>();
  expect(await check(() => promise, '{}', AbortSignal.abort(reason), held)).toBe(reason);
  held.release();
  await setImmediate();
  expect(isReleased).toBe(false);
  resolve(undefined);
  await setImmediate();
  expect(isReleased).toBe(true);
});
