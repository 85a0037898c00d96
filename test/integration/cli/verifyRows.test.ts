/** `projections verify`, interrupted and beside a service that goes on. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli, startCli } from '../../support/processes/cliProcess.ts';
import { rowForger } from '../../support/stores/forger/rowForger.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

const copies = async (): Promise<string[]> =>
  (await readdir(join(service.folder, 'read-models'))).filter((name) => name.includes('verifying'));

test('goes on where it was interrupted, names what differs, and leaves no copy behind', async () => {
  for (let agent = 0; agent < 3; agent += 1) await service.createAgent({ name: `Agent ${agent}` });
  await rowForger({ DATA_DIR: service.folder }).run(`UPDATE agents SET instruction = 'Forged.'`);
  const interrupted = startCli(service.folder, 'projections', 'verify');
  await interrupted.told((err) => err.includes('of the log read') || err.includes('compared'));
  interrupted.kill('SIGINT');
  const { code } = await interrupted.ended;
  expect([1, 130]).toContain(code);
  expect(await copies()).toHaveLength(code === 130 ? 1 : 0);
  const { out, code: found } = await runCli(service.folder, 'projections', 'verify');
  expect(found).toBe(1);
  expect(out).toContain('3 rows do not say what the log says:');
  expect(out).toMatch(/agents agent_\w+: instruction/);
  expect(out).toContain('projections rebuild');
  expect(out).not.toContain('Forged.');
  expect(await copies()).toEqual([]);
}, 60_000);

test('finds nothing while runs go on', async () => {
  const agent = await service.createAgent();
  const done = new AbortController();
  async function runOn(): Promise<void> {
    while (!done.signal.aborted) await service.post(`/v1/agents/${agent}/run`, { input: 'Hi.' });
  }
  const running = Promise.all([runOn(), runOn()]);
  for (let pass = 0; pass < 3; pass += 1) {
    const { code, out } = await runCli(service.folder, '--json', 'projections', 'verify');
    expect(JSON.parse(out)).toMatchObject({ complete: true, differing: 0, first: [] });
    expect(code).toBe(0);
  }
  done.abort();
  await running;
}, 60_000);
