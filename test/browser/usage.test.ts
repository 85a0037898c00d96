/** The view of usage and storage. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { startScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, startTestService } from '../support/http/service.ts';
import { newKey } from '../support/processes/operator.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';

const PRICE = { input_per_million: '2.5', output_per_million: '10' };
const KEY_NAME = XSS_PAYLOADS[2]!;

const folder = await mkdtemp(join(tmpdir(), 'turnlog-usage-view-'));
const model = await startScriptedModel(({ messages }) => {
  if (messages.at(-1)!.content === 'fail') return { status: 400 };
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };
  return { text: 'Hello.', usage };
});
const of = (id: string, more: object) => ({
  id,
  provider: 'script',
  context_window: 1_000_000,
  ...more,
});
await writeFile(
  join(folder, 'models.json'),
  JSON.stringify({
    providers: { script: { base_url: model.baseUrl } },
    models: [of('priced', { price: PRICE }), of('free', {})],
  }),
);
const service = await startTestService(undefined, {
  MODELS_FILE: join(folder, 'models.json'),
  MODEL_MAX_RETRIES: '0',
});
const browser = await startConsoleBrowser('usage');
const withBrowser = browser ? test : test.skip;
const agents: string[] = [];

beforeAll(async () => {
  const { body } = await service.post('/v1/keys', { name: KEY_NAME, scopes: ['agents:run'] });
  const other = apiClient(service.url, body.data.api_key as string);
  for (const name of ['Support', ...XSS_PAYLOADS.slice(0, 12)])
    agents.push(
      await service.createAgent({ name, model: agents.length === 1 ? 'free' : 'priced' }),
    );
  for (const agent of agents) await service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
  for (const input of ['fail', 'hi', 'hi'])
    await other.post(`/v1/agents/${agents[0]}/run`, { input });
});
afterAll(async () => {
  await browser?.close();
  await service.close();
  await model.close();
  await rm(folder, { recursive: true });
});

const cellOf = (page: ConsolePage, row: string, column: number) =>
  page.getByRole('row').filter({ hasText: row }).getByRole('cell').nth(column);
const total = (page: ConsolePage, title: string): Promise<string> =>
  page.locator(`dt:text-is("${title}") + dd`).innerText();
const groupBy = (page: ConsolePage, group: string) =>
  page.getByLabel('Group by').selectOption(group);

withBrowser('shows totals, charts and every number by day', async () => {
  const page = await browser!.open('/usage', { service });
  const today = new Date().toISOString().slice(0, 10);
  await page.getByRole('figure', { name: 'Runs by day' }).waitFor();
  expect(await total(page, 'Runs')).toBe('16');
  expect(await total(page, 'Failed')).toBe('1');
  expect(await total(page, 'All tokens')).toBe('16,500');
  // 14 priced runs of 1,000 and 100 tokens, with every digit.
  expect(await total(page, 'Cost')).toBe('0.049 USD');
  expect(await total(page, 'Tokens without a price')).toBe('1,100');
  expect(await cellOf(page, today, 0).innerText()).toBe('16');
  const days = page.getByRole('region', { name: 'Usage by day' });
  expect(await days.getByRole('row').count()).toBe(31);

  await page
    .getByRole('figure', { name: 'Runs by day' })
    .getByRole('img', { name: `${today} · Completed: 15 · Failed: 1 · Interrupted: 0` })
    .waitFor();
  expect(await page.inspect('by-day')).toEqual([]);

  expect(page.problems).toEqual([]);
});

withBrowser(
  'groups by agent and key, with their names, and filters by what is chosen',
  async () => {
    const page = await browser!.open('/usage', { service });
    await groupBy(page, 'agent');
    await page.getByRole('figure', { name: 'Runs by agent, the first 12' }).waitFor();
    expect(await cellOf(page, 'Support', 0).innerText()).toBe('4');
    for (const name of XSS_PAYLOADS.slice(0, 12))
      await page.getByRole('rowheader', { name, exact: true }).waitFor();
    expect(await page.inspect('by-agent')).toEqual([]);

    // The agents are not shown as if they were keys until the keys are there.
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    await page.route(/by=key/, (route) => held.then(() => route.continue()));
    await groupBy(page, 'key');
    await page.getByRole('figure', { name: /^Runs by agent/ }).waitFor({ state: 'detached' });
    expect(await page.getByRole('figure').count()).toBe(0);
    release();
    await page.getByRole('figure', { name: 'Runs by key' }).waitFor();
    await page.getByRole('rowheader', { name: KEY_NAME, exact: true }).waitFor();
    expect(await cellOf(page, KEY_NAME, 0).innerText()).toBe('3');
    await page.getByRole('link', { name: KEY_NAME, exact: true }).click();
    await groupBy(page, 'code');
    await page.getByRole('rowheader', { name: 'model_error' }).waitFor();
    expect(await cellOf(page, 'model_error', 2).innerText()).toBe('1');
    await page.locator('dt:text-is("Runs") + dd:text-is("3")').waitFor();
    const address = new URL(page.url());
    expect([address.searchParams.get('by'), address.searchParams.get('key_id')]).toEqual([
      'code',
      expect.stringMatching(/^key_/),
    ]);
    await page.reload();
    await page.getByRole('rowheader', { name: 'model_error' }).waitFor();
    await page.locator('dt:text-is("Runs") + dd:text-is("3")').waitFor();

    await page.getByLabel('Kind').selectOption('Replays');
    await page.getByRole('heading', { name: 'No runs in these days' }).waitFor();
    expect(await page.inspect('empty')).toEqual([]);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('rowheader', { name: 'none (completed)' }).waitFor();
    expect(await total(page, 'Runs')).toBe('16');
    expect(await page.evaluate('window.__xss')).toBeUndefined();
    expect(page.problems).toEqual([]);
  },
);

withBrowser('does not show a failed request as days without runs', async () => {
  const page = await browser!.open('/system', { service });
  const totals = await page.rejectRequests(/\/v1\/usage\?(?!.*by=)/);
  await page.goto(`${service.url}/console/usage`);
  const alert = page.getByRole('alert').filter({ hasText: 'Rejected by the test.' });
  await alert.waitFor();
  await page.getByRole('heading', { name: 'Storage' }).waitFor();
  expect(await page.getByText('No runs in these days').count()).toBe(0);
  await totals.accept();
  await alert.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('figure', { name: 'Runs by day' }).waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('takes days from the address and from its fields', async () => {
  const page = await browser!.open('/usage?from=2026-01-01&to=2026-01-03', { service });
  await page.getByRole('heading', { name: 'No runs in these days' }).waitFor();
  expect(await page.getByLabel('From (UTC)').inputValue()).toBe('2026-01-01');
  await page.getByLabel('Days').selectOption('Last 7 days');
  await page.getByLabel('From (UTC)').waitFor({ state: 'hidden' });
  await page.getByRole('figure', { name: 'Runs by day' }).waitFor();
  const days = page.getByRole('region', { name: 'Usage by day' });
  expect(await days.getByRole('row').count()).toBe(8);
  expect(new URL(page.url()).search).toBe('?days=7');
});

withBrowser('shows the storage and its quotas', async () => {
  const page = await browser!.open('/usage', { service });
  await page.getByRole('heading', { name: 'Storage' }).scrollIntoViewIfNeeded();
  const events = page.getByRole('row', { name: /^Events today/ });
  expect(await events.innerText()).toMatch(/\d[\d,]* of 10,000,000$/);
  expect(await events.getByRole('meter').getAttribute('title')).toMatch(/^\d+ %$/);
});

withBrowser('shows why it is closed to a key without the scope', async () => {
  const { api_key: key } = await newKey(service.folder, { scopes: ['agents:run'] });
  const page = await browser!.open('/usage', { service, key });
  await page.getByRole('heading', { name: 'This view is closed to your key' }).first().waitFor();
  await page.getByText('sessions:read').first().waitFor();
});

withBrowser.each([
  { name: 'dark', theme: 'dark' },
  { name: 'phone', isPhone: true },
] as const)('has no barrier on a $name screen', async ({ name, ...options }) => {
  const page = await browser!.open('/usage?days=7', { service, ...options });
  await page.getByRole('figure', { name: 'Tokens by day' }).waitFor();
  expect(await page.inspect(name)).toEqual([]);
  const wide = "[...document.querySelectorAll('html, main, main > *, main > * > *')]";
  expect(await page.evaluate(`${wide}.some((e) => e.scrollWidth > e.clientWidth)`)).toBe(false);
  await groupBy(page, 'agent');
  await page.getByRole('figure', { name: /^Runs by agent/ }).waitFor();
  await page.getByRole('region', { name: 'Usage by agent' }).scrollIntoViewIfNeeded();
  expect(await page.inspect(`${name}-by-agent`)).toEqual([]);
  expect(page.problems).toEqual([]);
});
