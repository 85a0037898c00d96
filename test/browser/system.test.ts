/** The system view: health, limits and their use, the figures of the process. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import { startTestService } from '../support/http/service.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('system');
const withBrowser = browser ? test : test.skip;

beforeAll(() => service.createAgent());
afterAll(async () => {
  await browser?.close();
  await service.close();
});

/** Lets health be what a test needs, which no process of it can be made to have. */
const healthOf = (page: ConsolePage, change: (data: any) => object) =>
  page.route('**/health/ready', async (route) => {
    const response = await route.fetch();
    const json = (await response.json()) as { data: object };
    await route.fulfill({ response, json: { ...json, data: change(json.data) } });
  });

async function inspectAll(page: ConsolePage, name: string): Promise<void> {
  for (const [look, theme, width, height] of [
    ['light', 'light', 1280, 2_000],
    ['dark', 'dark', 1280, 1_200],
    ['phone', 'light', 390, 2_600],
  ] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height });
    expect(await page.inspect(`${name}-${look}`)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  }
}

withBrowser(
  'shows the parts, the limits and the process, and refreshes them in place',
  async () => {
    const page = await browser!.open('/system', { service });
    await page.getByText('Nothing needs attention').waitFor();
    await page.getByText('ready', { exact: true }).waitFor();
    const parts = page.getByRole('region', { name: 'Parts', exact: true });
    await parts.getByRole('row', { name: /Read models up to date/ }).waitFor();
    await parts.getByRole('row', { name: /Transparency log active 0 ms/ }).waitFor();
    const limits = page.getByRole('region', { name: 'Limits and their use', exact: true });
    const connections = limits.getByRole('row', { name: /^connections/ });
    expect(await connections.innerText()).toMatch(/\d+ of 10,000\s+0\s+0/);
    expect(await connections.getByRole('meter').getAttribute('aria-valuemax')).toBe('10000');
    const quotas = page.getByRole('region', { name: 'Quotas of your account' });
    await quotas.getByText(/^[1-9]\d* of 10,000,000$/).waitFor();
    const process_ = page.getByRole('region', { name: 'Process' });
    await process_.getByText(/MiB of/).waitFor();
    // CPU is known from the second read on: the view has refreshed.
    await process_.getByText(/^\d+ %$/).waitFor();
    await inspectAll(page, 'ready');
    expect(page.problems).toEqual([]);
  },
);

withBrowser('says what is wrong, and what to do first, as text', async () => {
  const page = await browser!.open('/system', { service, key: service.key });
  await healthOf(page, (data) => ({
    ...data,
    status: 'degraded',
    projection: {
      caught_up: false,
      lag_ms: 93_000,
      reason: XSS_PAYLOADS[0],
      parked_streams: [{ stream: 'session-session_1', revision: 7, event_type: 'x' }],
    },
    relay: { state: 'retrying', lag_ms: 61_000, reason: 'The broker kafka:9092 can’t be reached.' },
    tool_servers: [
      { name: XSS_PAYLOADS[2], state: 'away', tools: 3, reason: XSS_PAYLOADS[19] },
      { name: 'files', state: 'up', tools: 5 },
    ],
    open_circuits: ['openai'],
    disk: { state: 'low', folders: [{ folder: 'DATA_DIR', free_bytes: 900_000_000 }] },
  }));
  await page.reload();
  const attention = page.getByRole('region', { name: 'Needs attention' });
  await attention.getByText('1: session-session_1').waitFor();
  const text = await attention.innerText();
  expect(text).toContain(XSS_PAYLOADS[0]);
  expect(text).toContain(XSS_PAYLOADS[19]);
  expect(text).toContain('First: Check that Kafka runs');
  await page.getByText('degraded', { exact: true }).waitFor();
  await page.getByRole('row', { name: /Read models behind 1 min 33 s/ }).waitFor();
  await inspectAll(page, 'degraded');
  expect(await page.evaluate('window.__xss')).toBeUndefined();
  expect(page.problems).toEqual([]);
});

withBrowser('follows a service that is not ready, until it is again', async () => {
  const page = await browser!.open('/system', { service });
  await page.getByText('Nothing needs attention').waitFor();
  await page.route('**/health/ready', (route) =>
    route.fulfill({
      status: 503,
      json: {
        success: false,
        error: 'The event log can’t be read.',
        code: 'store_unavailable',
        status: 503,
        retry: 'same_key',
      },
    }),
  );
  await page.getByText('not ready').waitFor();
  await page.getByText('The event log can’t be read.').waitFor();
  expect(await page.inspect('not-ready')).toEqual([]);
  await page.unroute('**/health/ready');
  await page.getByText('Nothing needs attention').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser(
  'says why figures are closed to a key without metrics:read, and shows the rest',
  async () => {
    const issued = await service.post('/v1/keys', { name: 'reader', scopes: ['sessions:read'] });
    const page = await browser!.open('/system', {
      service,
      key: issued.body.data.api_key as string,
    });
    await page.getByText('Nothing needs attention').waitFor();
    const limits = page.getByRole('region', { name: 'Limits and their use', exact: true });
    await limits.getByText('This view is closed to your key').waitFor();
    expect(await limits.innerText()).toContain('metrics:read');
    const quotas = page.getByRole('region', { name: 'Quotas of your account' });
    await quotas.getByText(/of 10,000,000$/).waitFor();
    expect(await page.inspect('closed')).toEqual([]);
    expect(page.problems).toEqual([]);
  },
);
