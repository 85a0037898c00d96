import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

/** The session of a first turn. */
async function run(agent: string): Promise<string> {
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
  return body.data.session_id as string;
}

test('503 proof_pending is answered while no checkpoint covers the session, and its proof later', async () => {
  const agent = await service.createAgent();
  const covered = await run(agent);
  expect((await service.get(`/v1/sessions/${covered}/proof`)).status).toBe(200);
  // A tree that does not know how large it is does not grow.
  const trees = join(service.folder, 'tlog');
  const tree = (await readFile(join(trees, '.current'), 'utf8')).trim();
  const state = join(trees, tree, 'state.json');
  const whole = await readFile(state);
  await writeFile(state, '{}');

  const session = await run(agent);
  const { status, headers, body } = await service.get(`/v1/sessions/${session}/proof`);
  expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'proof_pending', '1']);
  expect((await service.get(`/v1/sessions/${covered}/proof`)).status).toBe(200);

  await writeFile(state, whole);
  await eventually(
    () => service.get(`/v1/sessions/${session}/proof`),
    ({ status: now }) => now === 200,
  );
});
