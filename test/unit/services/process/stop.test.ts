import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { stopGracefully } from '../../../../services/process/stop.ts';
import {
  createRunsInFlight,
  type RunsInFlight,
} from '../../../../shared/runs/queueing/runsInFlight.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const SUBJECT = { account_id: 'acct_1', agent_id: 'agent_1', session_id: 'session_1' };

/** A run in flight that lasts `ms`. */
async function runFor(ms: number, inFlight: RunsInFlight): Promise<void> {
  const run = inFlight.start(SUBJECT);
  await sleep(ms);
  run.end();
}

/** A server with one request at work. */
function serverWithRequest() {
  const request = Promise.withResolvers<void>();
  const state = { destroyConnections: false, isAnswering: false };
  return {
    answer: request.resolve,
    state,
    server: {
      url: '',
      close: () => request.promise,
      isAnswering: () => state.isAnswering,
      destroyConnections: () => void (state.destroyConnections = true),
    },
  };
}

test('a run that begins during the stop, for a request that was accepted before, is given the grace time too', async () => {
  const { server, answer, state } = serverWithRequest();
  const inFlight = createRunsInFlight();
  const stopped = stopGracefully({
    server,
    inFlight,
    logger: createLogger('silent'),
    graceMs: 30_000,
  });
  await sleep(50);
  // Longer than the last answers are given.
  await runFor(2_500, inFlight);
  answer();
  await stopped;
  expect(state.destroyConnections).toBe(false);
});

test('a request that was accepted before may take longer than the last answers before it begins its run', async () => {
  const { server, answer, state } = serverWithRequest();
  const inFlight = createRunsInFlight();
  const logger = createLogger('silent');
  state.isAnswering = true;
  const stopped = stopGracefully({ server, inFlight, logger, graceMs: 30_000 });
  await sleep(3_000);
  await runFor(50, inFlight);
  answer();
  await stopped;
  expect(state.destroyConnections).toBe(false);
});

test('a request that goes on for longer than the grace time is cut off', async () => {
  const { server, state } = serverWithRequest();
  const inFlight = createRunsInFlight();
  state.isAnswering = true;
  await stopGracefully({ server, inFlight, logger: createLogger('silent'), graceMs: 100 });
  expect(state.destroyConnections).toBe(true);
});

test('no run begins once the service has stopped', async () => {
  const { server, state } = serverWithRequest();
  const inFlight = createRunsInFlight();
  await stopGracefully({ server, inFlight, logger: createLogger('silent'), graceMs: 30_000 });
  expect(state.destroyConnections).toBe(true);
  await expect(runFor(0, inFlight)).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
});
