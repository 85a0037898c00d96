/** The list of sessions and one session, as a person uses them. */
import { afterAll, expect, test } from '@jest/globals';
import { startConsoleBrowser } from '../support/browser/console.ts';
import { startTestService } from '../support/http/service.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('sessions');
afterAll(async () => {
  await browser?.close();
  await service.close();
});
const withBrowser = browser ? test : test.skip;

const agentId = await service.createAgent({ name: 'Support' });

/** Runs the agent once, and returns the id of the session. */
async function run(input: string, session_id?: string, agent = agentId): Promise<string> {
  const { body } = await service.post(`/v1/agents/${agent}/run`, {
    input,
    ...(session_id !== undefined && { session_id }),
  });
  return (body.data?.session_id ?? body.session_id) as string;
}

withBrowser('shows sessions', async () => {
  const id = await run('Where is my refund?');
  await service.send('PATCH', `/v1/sessions/${id}`, {
    title: 'A refund',
    labels: { customer: '4711' },
  });
  for (let i = 0; i < 8; i += 1) await run(`Question ${i}`);
  await run('And now?', id);
  const page = await browser!.open('/sessions', { service });
  await page.getByRole('link', { name: 'A refund' }).waitFor();
  expect(await page.inspect('list')).toEqual([]);
  await page.getByRole('link', { name: 'A refund' }).click();
  await page.getByRole('article', { name: 'Turn 2' }).waitFor();
  expect(await page.inspect('session')).toEqual([]);
  await page.getByRole('link', { name: 'Timeline' }).click();
  await page.getByText('Events 1–2').waitFor();
  expect(await page.inspect('timeline')).toEqual([]);
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page.getByRole('link', { name: 'Event 1', exact: true }).click();
  await page.getByRole('button', { name: 'Copy JSON' }).waitFor();
  expect(await page.inspect('events')).toEqual([]);
  expect(page.problems).toEqual([]);
});
