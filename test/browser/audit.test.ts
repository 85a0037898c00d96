/** The audit view: checkpoints, trust, verification in the browser, receipts. */
import { createPrivateKey } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { formatCheckpoint, parseCheckpoint } from '../../shared/transparency/tlog/checkpoint.ts';
import { parseNote, signNote } from '../../shared/transparency/tlog/note.ts';
import {
  formatVkey,
  noteSigner,
  type NoteSigner,
} from '../../shared/transparency/tlog/noteKeys.ts';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import { startTestService, type TestService } from '../support/http/service.ts';
import { startTestWitness, writeWitnessesFile } from '../support/servers/witness/witness.ts';

const folder = await mkdtemp(join(tmpdir(), 'turnlog-audit-'));
let log: NoteSigner | undefined;
const witness = await startTestWitness('witness.example/w1', () =>
  log ? formatVkey(log.key) : '',
);
const browser = await startConsoleBrowser('audit');
const withBrowser = browser ? test : test.skip;

let service: TestService;
let sessionId: string;
let erasedId: string;

/** The newest checkpoint, once it covers everything that was recorded. */
async function newestCheckpoint(): Promise<string> {
  const response = await fetch(`${service.url}/v1/log/checkpoint`, {
    headers: { 'x-api-key': service.key },
  });
  return response.ok ? response.text() : '';
}

async function untilCosigned(): Promise<string> {
  for (;;) {
    const note = await newestCheckpoint();
    if (note.includes('witness.example/w1')) return note;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

beforeAll(async () => {
  service = await startTestService(
    { text: 'The capital of France is Paris.' },
    {
      LOG_WITNESSES_FILE: await writeWitnessesFile(folder, [witness]),
      LOG_ORIGIN: 'log.example/turnlog',
    },
  );
  const pem = await readFile(join(service.folder, 'log-signing-key.pem'), 'utf8');
  let note = '';
  while (note === '') note = await newestCheckpoint();
  log = noteSigner(note.split('\n')[0]!, createPrivateKey(pem));
  const agent = await service.createAgent();
  const run = async (session_id?: string): Promise<string> => {
    const input = 'What is the capital of France?';
    const { body } = await service.post(`/v1/agents/${agent}/run`, { input, session_id });
    return body.data.session_id as string;
  };
  sessionId = await run();
  await run(sessionId);
  erasedId = await run();
  const note256 = encodeURIComponent(XSS_PAYLOADS[2]!);
  await service.send('DELETE', `/v1/sessions/${erasedId}?note=${note256}`, '');
  await untilCosigned();
});
afterAll(async () => {
  await browser?.close();
  await service?.close();
  await witness.close();
  await rm(folder, { recursive: true });
});

const keysOf = (): string => `${formatVkey(log!.key)}\n${witness.vkey}`;

/** Trusts these keys, and a checkpoint. */
async function trust(page: ConsolePage, keys: string, checkpoint?: string): Promise<void> {
  await page.getByLabel('Verifier keys').fill(keys);
  await page.getByRole('button', { name: 'Save keys' }).click();
  if (checkpoint !== undefined) await pin(page, checkpoint);
}

/** Pins a checkpoint in the field that is open. */
async function pin(page: ConsolePage, checkpoint: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Pinned checkpoint' }).fill(checkpoint);
  await page.getByRole('button', { name: 'Pin', exact: true }).click();
  await page.getByRole('button', { name: 'Unpin' }).waitFor();
}

const verify = (page: ConsolePage) =>
  page.getByRole('button', { name: 'Verify', exact: true }).click();
const result = (page: ConsolePage) => page.getByRole('region', { name: 'Verify a session' });

withBrowser(
  'pins a checkpoint, verifies a session against it, and says what is proven',
  async () => {
    const page = await browser!.open(`/audit?session=${sessionId}`, { service });
    await page.getByText('Pin a checkpoint now').waitFor();
    await page.getByRole('button', { name: 'Pin this checkpoint' }).click();
    await page.getByText(/It extends the pinned checkpoint by \d+ events/).waitFor();
    await trust(page, keysOf());
    const checkpoint = page.getByRole('region', { name: 'Newest checkpoint' });
    await checkpoint.getByText('Valid').nth(1).waitFor();
    await checkpoint.getByRole('row', { name: /witness.example.w1 Witness Valid \w+/ }).waitFor();
    await verify(page);
    await page.getByRole('heading', { name: 'Everything matches' }).waitFor();
    const text = await result(page).innerText();
    expect(text).toContain('was changed, dropped, added or moved: 5 events');
    expect(text).toContain('You trust the key that signed the checkpoint');
    expect(text).toMatch(/5 events of the session were under it, and 0 came later/);
    expect(text).toContain('cosigned this checkpoint at');
    expect(text).toContain('Not shown by any proof');
    for (const [name, theme, isPhone] of [
      ['light', 'light', false],
      ['dark', 'dark', false],
      ['phone', 'light', true],
    ] as const) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      await page.setViewportSize(
        isPhone ? { width: 390, height: 2_600 } : { width: 1280, height: 1_500 },
      );
      expect(await page.inspect(`verified-${name}`)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
    // The pin and the keys outlast the tab.
    await page.reload();
    await page.getByRole('button', { name: 'Unpin' }).waitFor();
    expect(await page.getByLabel('Verifier keys').inputValue()).toBe(keysOf());
    expect(page.problems).toEqual([]);
  },
);

withBrowser('says what it could not check without a key, a pin and witnesses', async () => {
  const page = await browser!.open(`/audit?session=${sessionId}`, { service });
  await verify(page);
  await page.getByRole('heading', { name: 'Everything that could be checked matches' }).waitFor();
  const text = await result(page).innerText();
  expect(text).toContain('Not checked: you trust no key of log.example/turnlog');
  expect(text).toContain('Not compared: no checkpoint is pinned');
  expect(text).toContain('You trust no witness');
  expect(await page.inspect('unpinned')).toEqual([]);
  expect(page.problems).toEqual([]);
});

withBrowser('names the first event that a lying service changed', async () => {
  const page = await browser!.open(`/audit?session=${sessionId}`, { service });
  await trust(page, keysOf(), await newestCheckpoint());
  await page.route('**/events?*', async (route) => {
    const response = await route.fetch();
    const json = (await response.json()) as { data: { revision: number; data: any }[] };
    json.data[2]!.data.output.text = XSS_PAYLOADS[2]!;
    await route.fulfill({ response, json });
  });
  await verify(page);
  await page.getByText('The event at revision 2 has another output').waitFor();
  const report = await page.getByRole('alert').innerText();
  expect(report).toContain('session.turn_completed.v1');
  expect(report).toContain('This text was changed after it was recorded.');
  expect(report).toMatch(/Events before it that match\s+2/);
  expect(report).toMatch(/Expected\s+[0-9a-f]{64}\s+Actual\s+[0-9a-f]{64}/);
  expect(await page.inspect('mismatch')).toEqual([]);
  const link = page.getByRole('link', { name: 'Open the event' });
  expect(await link.getAttribute('href')).toBe(`/console/sessions/${sessionId}?tab=events&event=2`);
  expect(page.problems).toEqual([]);
});

withBrowser('finds an event that the service shows with another hash chain', async () => {
  const page = await browser!.open(`/audit?session=${sessionId}`, { service });
  const drop = (events: { revision: number }[]): { revision: number }[] => events.toSpliced(2, 1);
  await page.route('**/events?*', async (route) => {
    const response = await route.fetch();
    const json = (await response.json()) as { data: { revision: number }[] };
    await route.fulfill({ response, json: { ...json, data: drop(json.data) } });
  });
  await verify(page);
  await page.getByText('The event at revision 2 has another revision.').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('shows that the log does not fit a checkpoint that was kept', async () => {
  const page = await browser!.open(`/audit?session=${sessionId}`, { service });
  const { origin, size } = parseCheckpoint(parseNote(await newestCheckpoint()).text);
  const older = { origin, size: size - 3, root: Buffer.alloc(32, 7) };
  await trust(page, keysOf(), signNote(formatCheckpoint(older), [log!]));
  const found = /The log of \d+ events does not begin with the \d+ events of the pinned checkpoint/;
  await page.getByRole('region', { name: 'Newest checkpoint' }).getByText(found).waitFor();
  await verify(page);
  await result(page).getByText(found).waitFor();
  expect(await page.inspect('rewritten')).toEqual([]);
  await page.getByRole('button', { name: 'Unpin' }).click();
  const newer = { origin, size: size + 1_000, root: Buffer.alloc(32, 7) };
  await pin(page, signNote(formatCheckpoint(newer), [log!]));
  await verify(page);
  await result(page).getByText('The log was rolled back').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser(
  'says why a key without audit:read sees nothing, and verifies without texts',
  async () => {
    const keyOf = async (scope: string): Promise<string> => {
      const { body } = await service.post('/v1/keys', { name: scope, scopes: [scope] });
      return body.data.api_key as string;
    };
    const closed = await browser!.open('/audit', { service, key: await keyOf('sessions:read') });
    const checkpoint = closed.getByRole('region', { name: 'Newest checkpoint' });
    await checkpoint.getByText('This view is closed to your key').waitFor();
    expect(await checkpoint.innerText()).toContain('audit:read');
    expect(await closed.inspect('closed')).toEqual([]);
    const auditor = await browser!.open(`/audit?session=${sessionId}`, {
      service,
      key: await keyOf('audit:read'),
    });
    await verify(auditor);
    await auditor.getByText('8 texts are withheld; only the commitment was checked.').waitFor();
    expect([...closed.problems, ...auditor.problems]).toEqual([]);
  },
);

withBrowser('stops a verification with its button and with Escape', async () => {
  const page = await browser!.open(`/audit?session=${sessionId}`, { service });
  // Responses never arrive until the verification is stopped.
  await page.route('**/proof?*', () => undefined);
  const button = page.getByRole('button', { name: 'Stop' });
  for (const stop of [() => button.click(), () => page.keyboard.press('Escape')]) {
    await verify(page);
    await page.getByText('Reading the session…').waitFor();
    await stop();
    await button.waitFor({ state: 'detached' });
    expect(await page.getByRole('alert').count()).toBe(0);
  }
  await page.unroute('**/proof?*');
  await verify(page);
  await page.getByRole('heading', { name: 'Everything that could be checked matches' }).waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('says so where the browser offers no WebCrypto', async () => {
  const page = await browser!.open('/system', { service });
  await page.addInitScript('delete Crypto.prototype.subtle');
  await page.goto(`${service.url}/console/audit`);
  await page.getByText('Open the console over HTTPS, or on localhost.').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('says what is wrong with an id, a key and a checkpoint that are none', async () => {
  const page = await browser!.open('/audit', { service });
  await page.getByLabel('Session', { exact: true }).fill('x');
  await page.keyboard.press('Enter');
  await page.getByText('Enter the id of a session').waitFor();
  await page.getByLabel('Verifier keys').fill('nonsense');
  await page.getByRole('button', { name: 'Save keys' }).click();
  await page.getByText('is no verifier key').waitFor();
  await page.getByRole('textbox', { name: 'Pinned checkpoint' }).fill('nonsense');
  await page.getByRole('button', { name: 'Pin', exact: true }).click();
  await page.getByText('A checkpoint is a text, an empty line, and signatures.').waitFor();
  await page.getByLabel('Session', { exact: true }).fill('session_01kahz1c3sf6w9m3v5q7x9z1a3');
  await verify(page);
  await page.getByText('This did not work').waitFor();
  expect(await page.inspect('errors')).toEqual([]);
  expect(page.problems).toEqual([]);
});
