/** The views of replays: the list, a new one, its progress, and what changed. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import { replaysOf } from '../support/http/replaysOverHttp.ts';
import { startTestService } from '../support/http/service.ts';
import { newKey } from '../support/processes/operator.ts';

const service = await startTestService(undefined, { MODEL_MAX_RETRIES: '0' });
const browser = await startConsoleBrowser('replays');
const withBrowser = browser ? test : test.skip;
const replays = replaysOf(service);

const HOSTILE = XSS_PAYLOADS.join('\n');
const POLICY = 'A refund takes five days.\nWrite to billing.\nThank you.';
const SHORTER = 'A refund takes two days.\nWrite to billing.\nThank you.';

/** Which answers the scripted model gives. */
let phase: 'recorded' | 'replayed' = 'recorded';
let agent: string;
let session: string;
let replayId: string;

const call = (expression: string) => ({
  tool_calls: [{ name: 'calculator', arguments: JSON.stringify({ expression }) }],
});
service.model.use(({ messages }) => {
  const last = messages.at(-1)!;
  const isReplayed = phase === 'replayed';
  if (JSON.stringify(messages).includes('It names the price.'))
    return { text: 'FAIL: It names no price.' };
  if (last.role === 'tool') return { text: 'It is 4.' };
  switch (last.content) {
    case 'refund?':
      return { text: isReplayed ? SHORTER : POLICY };
    case 'sum?':
      return call(isReplayed ? '1+3' : '2+2');
    case 'fail?':
      return isReplayed ? { status: 400 } : { text: 'Fine.' };
    case 'hostile?':
      return { text: isReplayed ? `${HOSTILE}\nlast` : HOSTILE };
    case 'slow?':
      return { text: 'Slow.', ...(isReplayed && { delay_ms: 60_000 }) };
    default:
      return { text: 'Hello.' };
  }
});

async function record(agentId: string, inputs: readonly string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs) {
    const body = { input, ...(session_id && { session_id }) };
    const reply = await service.post(`/v1/agents/${agentId}/run`, body);
    session_id = reply.body.data.session_id as string;
  }
  return session_id!;
}

beforeAll(async () => {
  agent = await service.createAgent({ name: XSS_PAYLOADS[2], tool: 'calculator' });
  phase = 'recorded';
  session = await record(agent, ['hi', 'refund?', 'fail?', 'hostile?', 'sum?']);
  phase = 'replayed';
  const { replay_id } = await replays.run([session], {
    missing_tools: 'live',
    instruction: 'Be exact.',
    agent_id: agent,
    checks: [
      { contains: 'days', turn: 2 },
      { judge: { model: 'scripted', criteria: 'It names the price.' }, turn: 2 },
    ],
  });
  replayId = replay_id;
});
afterAll(async () => {
  await browser?.close();
  await service.close();
});

const noScroll =
  "[...document.querySelectorAll('html, main, main > *, main > * > *')].every((e) => e.scrollWidth <= e.clientWidth)";
const turnLink = (page: ConsolePage, turn: number) =>
  page
    .getByRole('list', { name: 'Turns' })
    .getByRole('link', { name: new RegExp(`^Turn ${turn} `) });

withBrowser('lists replays with what they replace, their state and their outcomes', async () => {
  const page = await browser!.open('/replays', { service });
  const row = page.getByRole('listitem').filter({ hasText: replayId });
  await row.getByRole('link').waitFor();
  await page.getByText(`${XSS_PAYLOADS[2]} · revision 0 · another instruction`).waitFor();
  const text = (await row.innerText()).replaceAll(/\s+/g, ' ');
  expect(text).toContain('Completed 5 of 5 turns 2 same 2 changed 1 failed');
  expect(await page.inspect('list')).toEqual([]);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('list', { name: 'Turns' }).waitFor();
  expect(page.url()).toBe(`${service.url}/console/replays/${replayId}`);
  expect(page.problems).toEqual([]);
});

withBrowser(
  'narrows a replay to what changed, and shows totals as charts and numbers',
  async () => {
    const page = await browser!.open(`/replays/${replayId}`, { service });
    await turnLink(page, 2).waitFor();
    expect(await page.getByRole('list', { name: 'Turns' }).getByRole('listitem').count()).toBe(2);
    const { sums } = await replays.read(replayId);
    const tokens = page.getByRole('row', { name: /^All tokens/ }).getByRole('cell');
    expect((await tokens.allInnerTexts()).slice(0, 2)).toEqual(
      [sums.recorded, sums.replayed].map((took) => took.tokens.total.toLocaleString('en-US')),
    );
    await page
      .getByRole('figure', { name: 'Turns', exact: true })
      .getByRole('img', { name: 'Answers · Same: 2 · Changed: 2 · Failed: 1 · Skipped: 0' })
      .waitFor();
    await page
      .getByRole('list', { name: 'Turns' })
      .getByText(/^\d+ → \d+ ms$/)
      .first()
      .waitFor();
    expect(await page.inspect('replay')).toEqual([]);

    await page.getByRole('link', { name: /^failed/i }).click();
    await page.getByRole('list', { name: 'Turns' }).getByText('model_error').waitFor();
    expect(new URL(page.url()).search).toBe('?only=failed');
    await page.getByRole('link', { name: /^checks failed/i }).click();
    await turnLink(page, 2).waitFor();
    await page.getByRole('link', { name: /^all$/i }).click();
    await turnLink(page, 5).waitFor();
    await page.getByRole('link', { name: /^skipped/i }).click();
    await page.getByRole('heading', { name: 'No such turns' }).waitFor();
    expect(page.problems).toEqual([]);
  },
);

withBrowser('shows a changed answer word by word, and the verdict of the judge', async () => {
  const page = await browser!.open(`/replays/${replayId}`, { service });
  await turnLink(page, 2).click();
  await page.getByRole('deletion').waitFor();
  expect(await page.getByRole('deletion').allInnerTexts()).toEqual(['five']);
  expect(await page.getByRole('insertion').allInnerTexts()).toEqual(['two']);
  await page.getByText('{"contains":"days","turn":2}').waitFor();
  await page.getByText('FAIL: It names no price.').waitFor();
  expect(new URL(page.url()).searchParams.get('compared')).toBe(`${session}.2`);
  expect(await page.inspect('turn')).toEqual([]);
  expect(await page.getByRole('link', { name: 'Recorded turn' }).getAttribute('href')).toBe(
    `/console/sessions/${session}?turn=2`,
  );
  await page.keyboard.press('j');
  await page.getByRole('heading', { name: /^Turn 4 / }).waitFor();
  await page.keyboard.press('Escape');
  await turnLink(page, 4).waitFor();
  expect(new URL(page.url()).searchParams.has('compared')).toBe(false);
  expect(page.problems).toEqual([]);
});

withBrowser('shows answers that attack the page as text', async () => {
  const page = await browser!.open(`/replays/${replayId}?compared=${session}.4`, { service });
  await page.getByText(/unchanged lines/).click();
  const answer = page
    .locator('main section')
    .filter({ has: page.getByRole('heading', { name: 'Answer' }) });
  const shown = await answer.innerText();
  for (const payload of XSS_PAYLOADS.slice(0, 20)) expect(shown).toContain(payload);
  expect(await page.evaluate('window.__xss')).toBeUndefined();
  expect(await page.inspect('hostile')).toEqual([]);
  expect(page.problems).toEqual([]);
});

withBrowser('shows which tool calls differ, and why a turn failed', async () => {
  const path = `/replays/${replayId}?only=all&compared=${session}.5`;
  const page = await browser!.open(path, { service });
  await page.getByText('Both answers are the same.').waitFor();
  const calls = page.locator('main section').filter({ hasText: 'Tool calls' });
  expect((await calls.getByRole('deletion').allInnerTexts()).join('')).toContain('2');
  await calls.getByText('1. calculator').first().waitFor();
  expect(await page.inspect('tools')).toEqual([]);
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.getByRole('heading', { name: /^Turn 4 / }).waitFor();
  await page.keyboard.press('k');
  await page.getByText('The replayed turn failed: model_error').waitFor();
  await page.getByText('Fine.').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('starts a replay of a session from its link, and follows and cancels it', async () => {
  phase = 'recorded';
  const slow = await record(agent, ['hi', 'refund?', 'slow?']);
  phase = 'replayed';
  const page = await browser!.open(`/replays/new?session=${slow}&turn=2`, { service });
  expect(await page.getByLabel('Ids of sessions').inputValue()).toBe(slow);
  expect(await page.getByLabel('First turn').inputValue()).toBe('2');
  await page.getByLabel('Token budget').fill('50000');
  await page.getByLabel('Model', { exact: true }).selectOption('scripted');
  await page.getByRole('textbox', { name: 'Instruction' }).fill('Be quick.');
  const checks = page.getByLabel('Checks of each answer, as JSON');
  await checks.fill('days');
  await page.getByText('This is not JSON.').waitFor();
  expect(await page.getByRole('button', { name: 'Start replay' }).isDisabled()).toBe(true);
  await checks.fill('[{"contains": "days"}]');
  expect(await page.inspect('new')).toEqual([]);
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  const curl = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(curl).toContain(`"sessions":["${slow}"]`);
  await page.getByRole('button', { name: 'Start replay' }).click();

  await page.getByText('1 of 2 turns').waitFor();
  await page.getByRole('button', { name: 'Show the turns compared meanwhile' }).click();
  await turnLink(page, 2).waitFor();
  expect(await page.inspect('running')).toEqual([]);
  const started = new URL(page.url()).pathname.split('/').at(-1)!;
  expect((await replays.read(started)).settings).toMatchObject({
    model: 'scripted',
    instruction: 'Be quick.',
    turns: { from: 2 },
    budget: { tokens: 50_000 },
    checks: [{ contains: 'days' }],
  });
  await page.getByRole('button', { name: 'Cancel replay' }).click();
  await page.getByText('Cancelled').waitFor();
  expect((await replays.read(started)).status).toBe('cancelled');
  expect(page.problems).toEqual([]);
});

withBrowser('starts a replay of all sessions of an agent, and says how many they are', async () => {
  const other = await service.createAgent({ name: 'Quiet' });
  await record(other, ['hi', 'hi']);
  const page = await browser!.open('/replays/new', { service });
  await page.getByLabel('Agent', { exact: true }).selectOption('Quiet');
  await page.getByText('The filter matches 1 sessions with 2 turns.').waitFor();
  await page.getByRole('button', { name: 'Start replay' }).click();
  await page.getByText('2 of 2 turns').waitFor();
  await page.getByText('completed', { exact: true }).waitFor();
  await page.getByText('No answer has changed.').waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser('says what the service rejects, what is not there, and what to do first', async () => {
  const none = '00000000000000000000000000';
  const page = await browser!.open(`/replays/new?session=session_${none}`, { service });
  await page.getByRole('button', { name: 'Start replay' }).click();
  await page.getByRole('alert').getByText('session_not_found').waitFor();
  await page.goto(`${service.url}/console/replays/replay_${none}`);
  await page.getByRole('alert').getByText('replay_not_found').waitFor();
  await page.goto(`${service.url}/console/replays/${replayId}?compared=${session}.9`);
  await page.getByRole('heading', { name: 'This turn was not compared' }).waitFor();
  const { api_key: stranger } = await newKey(service.folder);
  const empty = await browser!.open('/replays', { service, key: stranger });
  await empty.getByRole('heading', { name: 'No replays yet' }).waitFor();
  expect(await empty.inspect('empty')).toEqual([]);
  await empty.getByRole('link', { name: 'New replay' }).click();
  await empty.getByRole('heading', { name: 'New replay' }).waitFor();
  const { api_key: key } = await newKey(service.folder, { scopes: ['agents:run'] });
  const closed = await browser!.open('/replays', { service, key });
  await closed.getByRole('heading', { name: 'This view is closed to your key' }).waitFor();
});

withBrowser('says why the list ends before its last page', async () => {
  const page = await browser!.open('/system', { service });
  const pages = await page.rejectRequests(/\/v1\/replays\?.*after=/);
  await page.route(/\/v1\/replays\?(?!.*after=)/, async (route) => {
    const response = await route.fetch();
    const link = `</v1/replays?after=${replayId}>; rel="next"`;
    await route.fulfill({ response, headers: { ...response.headers(), link } });
  });
  await page.goto(`${service.url}/console/replays`);
  const alert = page.getByRole('alert').filter({ hasText: 'Rejected by the test.' });
  await alert.waitFor();
  await page.getByRole('listitem').filter({ hasText: replayId }).waitFor();
  await page.waitForLoadState('networkidle');
  expect(pages.rejected()).toBe(1);
  const again = page.getByRole('button', { name: 'Try again' });
  const { y, height } = (await again.boundingBox())!;
  expect(y + height).toBeLessThan(800);
  expect(await page.inspect('incomplete')).toEqual([]);
  await pages.accept();
  await again.click();
  await alert.waitFor({ state: 'detached' });
  expect(page.problems).toEqual([]);
});

withBrowser.each([
  { name: 'dark', theme: 'dark' },
  { name: 'phone', isPhone: true },
] as const)('has no barrier on a $name screen', async ({ name, ...options }) => {
  const page = await browser!.open('/replays', { service, ...options });
  const row = page.getByRole('listitem').filter({ hasText: replayId });
  await row.getByRole('link').waitFor();
  expect(await page.inspect(`${name}-list`)).toEqual([]);
  await row.getByRole('link').click();
  await turnLink(page, 2).waitFor();
  expect(await page.inspect(`${name}-replay`)).toEqual([]);
  expect(await page.evaluate(noScroll)).toBe(true);
  await turnLink(page, 2).scrollIntoViewIfNeeded();
  expect(await page.inspect(`${name}-turns`)).toEqual([]);
  await turnLink(page, 2).click();
  await page.getByText('FAIL: It names no price.').waitFor();
  expect(await page.inspect(`${name}-turn`)).toEqual([]);
  expect(await page.evaluate(noScroll)).toBe(true);
  await page.goto(`${service.url}/console/replays/new`);
  await page.getByText(/The filter matches/).waitFor();
  expect(await page.inspect(`${name}-new`)).toEqual([]);
  expect(await page.evaluate(noScroll)).toBe(true);
  expect(page.problems).toEqual([]);
});
