/** The shared parts of all views of the console: sign-in, menu, keyboard, theme. */
import { afterAll, expect, test } from '@jest/globals';
import { startConsoleBrowser } from '../support/browser/console.ts';
import { startTestService } from '../support/http/service.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('shell');
afterAll(async () => {
  await browser?.close();
  await service.close();
});
const withBrowser = browser ? test : test.skip;

withBrowser(
  'signs in with a key, which no address contains, and says why another is rejected',
  async () => {
    const page = await browser!.open('/', { service, key: null });
    await page.getByLabel('API key').fill('sk_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page
      .getByText(/API key/i)
      .and(page.locator('.text-destructive'))
      .waitFor();
    expect(await page.inspect('sign-in')).toEqual([]);
    await page.getByLabel('API key').fill(service.key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
    expect(page.url()).toBe(`${service.url}/console/agents`);
    expect(page.problems).toEqual([]);
  },
);

withBrowser('is moved through with the keyboard', async () => {
  const page = await browser!.open('/', { service });
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('usage');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  expect(await page.inspect('shortcuts')).toEqual([]);
  expect(page.problems).toEqual([]);
});

withBrowser('shows the latest requests as curl commands without the key', async () => {
  const page = await browser!.open('/agents', { service });
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Requests as curl' }).click();
  await page.getByRole('button', { name: 'Copy' }).first().click();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toContain(`curl '${service.url}/v1/agents`);
  expect(copied).toContain('x-api-key: $TURNLOG_API_KEY');
  expect(copied).not.toContain(service.key);
});

withBrowser('is light or dark as the system is, unless a person chooses', async () => {
  const page = await browser!.open('/agents', { service });
  const colors = () =>
    page.evaluate<string>(
      "getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector('h1')).color",
    );
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  const light = await colors();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await colors();
  expect(dark).not.toBe(light);
  await page.getByLabel('Theme').selectOption('Light');
  expect(await colors()).toBe(light);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByLabel('Theme').selectOption('Dark');
  expect(await colors()).toBe(dark);
  await page.reload();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  expect(await colors()).toBe(dark);
});

withBrowser('shows views without the values that their addresses can’t have', async () => {
  const agent = await service.createAgent({ name: 'Linked' });
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
  const page = await browser!.open('/system', { service });
  for (const [path, bad] of [
    ['/agents', 'name=null'],
    [`/chat/${agent}`, 'sessions=5'],
    [`/sessions/${body.data.session_id as string}`, 'tab=zzz&turn=0&event=-1'],
    ['/sessions', 'status=bogus&agent_id=true&label=null'],
    ['/replays/new', 'session=5&turn=-1'],
    ['/usage', 'days=abc&from=2026-99-99&by=bogus&kind=1'],
  ]) {
    await page.goto(`${service.url}/console${path}?${bad}`);
    await page.waitForURL(`${service.url}/console${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }
  expect(page.problems).toEqual([]);
});
