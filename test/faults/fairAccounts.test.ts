import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { apiClient, startTestService, type TestService } from '../support/http/service.ts';
import { clientWith, eventually, newKey } from '../support/processes/operator.ts';
import { size } from '../support/jest/size.ts';

/** Of one account, far more than have a place. */
const WAITING = size({ small: 300, full: 1_000 });
const RUN_MS = size({ small: 2_000, full: 5_000 });
/**
 * Other suites run beside the small size. To wait for all of the other account's runs takes minutes.
 */
const SLACK_MS = size({ small: 30_000, full: 3_000 });

let service: TestService;
beforeAll(async () => {
  service = await startTestService(
    { text: 'Done.', delay_ms: RUN_MS },
    {
      MAX_RUNS: '4',
      MAX_RUNS_PER_ACCOUNT: '4',
      RUN_WAIT_MS: '600000',
      SHUTDOWN_GRACE_MS: '0',
    },
  );
});
afterAll(async () => {
  await service.close();
});

test('an account whose waiting runs take all places delays the run of another by one run at the most', async () => {
  const agent = await service.createAgent();
  const key = await newKey(service.folder);
  await clientWith(service.url, key);
  const other = apiClient(service.url, key.api_key);
  const made = await other.post('/v1/agents', {
    name: 'B',
    instruction: 'Be brief.',
    model: 'scripted',
  });
  const flood = Promise.allSettled(
    Array.from({ length: WAITING }, () =>
      service.post(`/v1/agents/${agent}/run`, { input: 'more' }),
    ),
  );
  await eventually(
    async () => (await service.get('/health/ready')).body.data,
    ({ runs_waiting }) => runs_waiting >= WAITING / 2,
  );
  for (let runs = 0; runs < 3; runs += 1) {
    const began = performance.now();
    const reply = await other.post(`/v1/agents/${made.body.data.agent_id}/run`, { input: 'mine' });
    expect(reply.status).toBe(200);
    // Its own time, and that of the one that it waited for.
    expect(performance.now() - began).toBeLessThan(2 * RUN_MS + SLACK_MS);
  }
  await service.service().stop();
  await flood;
});
