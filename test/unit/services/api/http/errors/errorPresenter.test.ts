import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { typeIds } from '../../../../../../infra/ids/typeIds.ts';
import { errorPresenter } from '../../../../../../services/api/features.ts';
import { answerErrors } from '../../../../../../services/api/http/middleware/errors.ts';
import { requestId } from '../../../../../../services/api/http/middleware/requestId.ts';
import { Rejection, type RejectionCode } from '../../../../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';
import {
  failedTurn,
  turnFailureError,
} from '../../../../../../shared/sessions/turns/turnFailure.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

/** Everything of an answer to a request whose command was rejected, but its request id. */
async function answerTo(code: RejectionCode) {
  const app = new Koa();
  app.use(requestId(typeIds));
  app.use(answerErrors(createLogger('silent'), errorPresenter));
  app.use(() => Promise.reject(new Rejection(code, 'What the domain says.')));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const { request_id: _, ...body } = (await response.json()) as Record<string, unknown>;
  await once(server.close(), 'close');
  return { ...body, retryAfter: response.headers.get('retry-after') };
}

const NOT_FOUND = {
  success: false,
  error: 'There is no such session of this agent.',
  code: 'session_not_found',
  status: 404,
  retry: 'never',
  retryAfter: null,
};

test("a session that there is not and another agent's are one answer", async () => {
  expect(await answerTo('session_missing')).toEqual(NOT_FOUND);
  expect(await answerTo('session_of_another_agent')).toEqual(NOT_FOUND);
});

test('what has to wait for the end of a turn is told to come again, like a second run', async () => {
  expect(await answerTo('turn_open')).toMatchObject({
    code: 'session_busy',
    status: 409,
    retry: 'same_key',
    retryAfter: '1',
  });
});

test('an agent that was deleted or erased is answered as to who reads it', async () => {
  expect(await answerTo('agent_deleted')).toMatchObject({ code: 'agent_not_found', status: 404 });
  expect(await answerTo('agent_erased')).toMatchObject({ code: 'agent_erased', status: 410 });
});

test.each([
  [new TurnlogError('invalid_request', 'It is not valid.'), 'never'],
  [new TurnlogError('rate_limited', 'Too many.'), 'same_key'],
  [new TurnlogError('store_unavailable', 'The store is away.'), 'same_key'],
  [new TurnlogError('session_busy', 'It is busy.', { retriable: true }), 'same_key'],
  [new TurnlogError('model_error', 'It failed.', { retry: 'new_key' }), 'new_key'],
  [
    new TurnlogError('model_error', 'It failed.').withTurn({ session_id: 's', turn: 2 }),
    'same_key',
  ],
] as const)('%s says what a client should do: %s', (error, retry) => {
  expect(errorPresenter.present(error, 'r')).toMatchObject({ retry, ...error.turn });
});

test('a run that failed inside the service has the recorded sentence', () => {
  const failure = { code: 'internal_error', message: 'The run failed; the log says more.' };
  const error = turnFailureError(failedTurn(failure), { session_id: 's', turn: 1 });
  expect(errorPresenter.present(errorPresenter.toPublicError(error), 'r')).toMatchObject({
    code: 'internal_error',
    error: failure.message,
    retry: 'new_key',
  });
});

test('a failure recorded with a code of a newer release keeps its turn and its advice', () => {
  const turn = { session_id: 's', turn: 2 };
  const recorded = turnFailureError(failedTurn({ code: 'melted', message: 'It melted.' }), turn);
  const shown = errorPresenter.present(errorPresenter.toPublicError(recorded), 'r');
  expect(shown).toMatchObject({ code: 'internal_error', retry: 'new_key', ...turn });
});

test.each(['turn_not_open', 'turn_of_another_run', 'agent_exists'] as const)(
  '%s is a defect, which a client is told nothing about',
  async (code) => {
    const answer = await answerTo(code);
    expect(answer).toMatchObject({ code: 'internal_error', status: 500, retry: 'same_key' });
    expect(answer).not.toMatchObject({ error: 'What the domain says.' });
  },
);
