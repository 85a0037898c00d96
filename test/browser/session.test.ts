/** One session: transcript, timeline, events, and what can be done with them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import { startTestService } from '../support/http/service.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('session');
afterAll(async () => {
  await browser?.close();
  await service.close();
});
const describeInBrowser = browser ? describe : describe.skip;

const LOOKS = [
  ['light', {}],
  ['dark', { theme: 'dark' }],
  ['phone', { isPhone: true }],
] as const;

const SUM = { name: 'calculator', arguments: '{"expression":"6*7"}' };

let agent: string;

/** Runs the agent once, and returns the id of the session. */
async function run(input: string, session_id?: string): Promise<string> {
  const body = { input, ...(session_id !== undefined && { session_id }) };
  const { body: answer } = await service.post(`/v1/agents/${agent}/run`, body);
  return (answer.data?.session_id ?? answer.session_id) as string;
}

const turn = (page: ConsolePage, number: number) =>
  page.getByRole('article', { name: `Turn ${number}`, exact: true });

const fitsWidth = (page: ConsolePage): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth');

beforeAll(async () => {
  agent = await service.createAgent({ name: 'Support', tool: 'calculator' });
});

describeInBrowser('a session', () => {
  let session: string;
  beforeAll(async () => {
    service.model.use([
      { text: '**Your refund** is on its way:\n\n- sent on Monday\n- 3 days' },
      { tool_calls: [SUM, { name: 'calculator', arguments: '{"expression":"1/"}' }] },
      { text: 'It is 42.', reasoning: 'The tool says 42.' },
      { status: 400, body: { error: { message: 'The prompt is too bad.' } } },
    ]);
    session = await run('Where is my refund?');
    await run('How much is 6 * 7?', session);
    await run('And this?', session);
    service.model.use({ text: 'Hello.' });
    const changes = { title: 'A refund', labels: { customer: '4711' } };
    await service.send('PATCH', `/v1/sessions/${session}`, changes);
  });

  test.each(LOOKS)('shows its transcript: %s', async (look, options) => {
    const page = await browser!.open(`/sessions/${session}`, { service, ...options });
    await page.getByRole('heading', { name: 'A refund', level: 1 }).waitFor();
    const first = turn(page, 1);
    await first.getByText('Where is my refund?').waitFor();
    await first.locator('strong', { hasText: 'Your refund' }).waitFor();
    await first.getByText(/ tokens · [\d.]+ (ms|s)/).waitFor();
    const second = turn(page, 2);
    expect(await second.locator('details').count()).toBe(3);
    await second.locator('details', { hasText: 'calculator' }).first().click();
    await second.getByText('{"expression":"6*7"}').waitFor();
    await second.getByText('Error', { exact: true }).waitFor();
    await second.getByText('Reasoning', { exact: true }).click();
    await second.getByText('The tool says 42.').waitFor();
    await turn(page, 3).getByText('Failed').waitFor();
    await turn(page, 3).getByText('model_error').waitFor();
    expect(await fitsWidth(page)).toBe(true);
    expect(await page.inspect(`transcript-${look}`)).toEqual([]);
    expect(page.problems).toEqual([]);
  });

  test.each(LOOKS)('shows what its turns did with their time: %s', async (look, options) => {
    const path = `/sessions/${session}?tab=timeline`;
    const page = await browser!.open(path, { service, ...options });
    const second = turn(page, 2);
    await second.getByRole('listitem').nth(3).waitFor();
    const calls = await second.getByRole('listitem').allInnerTexts();
    expect(calls.map((call) => /^(Model|Tool) [\w-]+/.exec(call)?.[0])).toEqual([
      'Model scripted-upstream-scripted',
      'Tool calculator',
      'Tool calculator',
      'Model scripted-upstream-scripted',
    ]);
    expect(calls[0]).toMatch(/\d+ \+ \d+ tokens/);
    expect(calls[2]).toContain('failed');
    await turn(page, 3).getByText('No call has been recorded').waitFor();
    expect(await fitsWidth(page)).toBe(true);
    expect(await page.inspect(`timeline-${look}`)).toEqual([]);

    await second.getByRole('link', { name: 'Events 3–6' }).click();
    await page
      .getByRole('article', { name: 'Event 3', exact: true })
      .getByText('"turn": 2')
      .waitFor();
    expect(new URL(page.url()).search).toBe('?tab=events&event=3');
    expect(page.problems).toEqual([]);
  });

  test.each(LOOKS)('shows its events, and one as JSON: %s', async (look, options) => {
    const page = await browser!.open(`/sessions/${session}?event=2`, { service, ...options });
    const event = page.getByRole('article', { name: 'Event 2', exact: true });
    await event.getByText('turn_completed', { exact: true }).waitFor();
    await event.getByRole('button', { name: 'Copy JSON' }).click();
    const json = JSON.parse(await page.evaluate('navigator.clipboard.readText()')) as object;
    const { body } = await service.get(`/v1/sessions/${session}/events?after=1&limit=1`);
    expect(json).toEqual(body.data[0]);
    expect(await fitsWidth(page)).toBe(true);
    expect(await page.inspect(`events-${look}`)).toEqual([]);
    await event.getByRole('link', { name: 'Event 2', exact: true }).click();
    await event.getByRole('button', { name: 'Copy JSON' }).waitFor({ state: 'detached' });
    expect(page.problems).toEqual([]);
  });

  test('shows the exact requests of a turn', async () => {
    const page = await browser!.open(`/sessions/${session}?turn=2`, { service });
    await turn(page, 2).getByRole('button', { name: 'Requests' }).click();
    const dialog = page.getByRole('dialog', { name: 'Model requests of turn 2' });
    await dialog.getByText('Hash matches').nth(1).waitFor();
    await dialog.getByRole('heading', { name: 'Model call 2' }).waitFor();
    await dialog.getByRole('button', { name: 'Copy JSON' }).first().click();
    const request = JSON.parse(await page.evaluate('navigator.clipboard.readText()')) as {
      messages: { content: string }[];
    };
    expect(request.messages.at(-1)!.content).toBe('How much is 6 * 7?');
    expect(await page.inspect('requests')).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(page.problems).toEqual([]);
  });

  test('links to each of its turns', async () => {
    const page = await browser!.open(`/sessions/${session}`, { service });
    await turn(page, 2).getByRole('link', { name: 'Link to turn 2' }).click();
    expect(new URL(page.url()).search).toBe('?turn=2');
    await page.locator('article[aria-current="true"]').getByText('How much is').waitFor();
    for (const key of ['j', 'j']) await page.keyboard.press(key);
    await turn(page, 3).locator('a:focus').waitFor();
  });

  test('is forked after a turn, and says what it was forked from', async () => {
    const page = await browser!.open(`/sessions/${session}`, { service });
    await turn(page, 2).getByRole('button', { name: 'Fork here' }).click();
    await page.getByRole('link', { name: / at turn 2/ }).waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1)!;
    expect(id).not.toBe(session);
    const { body } = await service.get(`/v1/sessions/${id}`);
    expect(body.data.forked_from).toMatchObject({ session_id: session, turn: 2 });
    await turn(page, 2).getByRole('link', { name: 'Shared' }).waitFor();
    expect(await page.inspect('fork')).toEqual([]);
    await page.getByRole('link', { name: 'Timeline' }).click();
    await turn(page, 2).getByRole('link', { name: 'Events 3–6' }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test('leads to the form of a replay, and to the chat', async () => {
    const page = await browser!.open(`/sessions/${session}`, { service });
    await turn(page, 2).getByRole('link', { name: 'Replay here' }).click();
    await page.waitForURL(`**/console/replays/new?session=${session}&turn=2`);
    await page.goBack();
    await page.getByRole('link', { name: 'Continue in chat' }).click();
    await page.waitForURL(`**/console/chat/${agent}?sessions=${session}`);
  });

  test('says so when there is none', async () => {
    const unknown = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
    const page = await browser!.open(`/sessions/${unknown}`, { service });
    await page.getByRole('alert').getByText('session_not_found').waitFor();
    expect(page.problems).toEqual([]);
  });
});

describeInBrowser('a running turn', () => {
  test('is shown as it happens, and can be cancelled', async () => {
    const session = await run('Hello');
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    service.model.use(async (_request, index) => {
      if (index > 0 && service.model.requests.at(-1)!.messages.at(-1)!.role === 'tool') await goOn;
      return service.model.requests.at(-1)!.messages.at(-1)!.role === 'tool'
        ? { text: 'At last.' }
        : { tool_calls: [SUM] };
    });
    const page = await browser!.open(`/sessions/${session}`, { service });
    await turn(page, 1).waitFor();
    const running = run('Now', session);
    await turn(page, 2).getByText('Running').waitFor();
    await turn(page, 2).locator('summary', { hasText: 'calculator' }).waitFor();
    expect(await page.inspect('running')).toEqual([]);
    resolve();
    await running;
    await turn(page, 2).getByText('At last.').waitFor();
    await turn(page, 2).getByText('Running').waitFor({ state: 'detached' });

    service.model.use({ fault: 'never_answer' });
    const cut = run('Never', session);
    await turn(page, 3).getByText('Waiting for the model…').waitFor();
    await page.getByRole('button', { name: 'Cancel turn' }).click();
    await cut;
    await turn(page, 3).getByText('cancelled', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Cancel turn' }).waitFor({ state: 'detached' });
    service.model.use({ text: 'Hello.' });
    expect(await page.inspect('cancelled')).toEqual([]);
    expect(page.problems).toEqual([]);
  });
});

describeInBrowser('a session of 300 turns', () => {
  let session: string;
  beforeAll(async () => {
    session = await run('Question 1');
    for (let number = 2; number <= 300; number += 1) await run(`Question ${number}`, session);
  }, 120_000);

  test('opens at its end, with few turns in the document', async () => {
    const page = await browser!.open(`/sessions/${session}`, { service });
    await turn(page, 300).waitFor();
    expect(await turn(page, 300).isVisible()).toBe(true);
    expect(await page.getByRole('article').count()).toBeLessThan(30);
    await run('Question 301', session);
    await turn(page, 301).getByText('Question 301').waitFor();
    await page.evaluate('document.querySelector("[aria-label=Transcript]").scrollTop = 0');
    await turn(page, 1).getByText('Question 1', { exact: true }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test('opens at a linked turn, and reads only the turns around it', async () => {
    const page = await browser!.open('/sessions', { service });
    const read: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes(`${session}?after`)) read.push(request.url());
    });
    await page.goto(`${service.url}/console/sessions/${session}?turn=150`);
    await turn(page, 150).getByText('Question 150').waitFor();
    const box = await turn(page, 150).boundingBox();
    expect(box!.y).toBeGreaterThan(0);
    expect(box!.y).toBeLessThan(300);
    const pages = read.map((url) => Number(new URL(url).searchParams.get('after')));
    for (const after of pages.filter((each) => each < 1_000)) {
      expect(after).toBeGreaterThanOrEqual(100);
      expect(after).toBeLessThan(200);
    }
    expect(await page.inspect('linked')).toEqual([]);
    expect(page.problems).toEqual([]);
  });

  test('reads a linked turn while it reads the session', async () => {
    const page = await browser!.open('/system', { service });
    const held = Promise.withResolvers<void>();
    await page.route(new RegExp(`${session}\\?.*after=2147483647`), (route) =>
      held.promise.then(() => route.continue()),
    );
    const ofTurn = page.waitForResponse(new RegExp(`${session}\\?after=140`));
    await page.goto(`${service.url}/console/sessions/${session}?turn=150`);
    expect((await ofTurn).status()).toBe(200);
    held.resolve();
    await turn(page, 150).getByText('Question 150').waitFor();
    expect(page.problems).toEqual([]);
  });

  test('shows the turns that came while one was elsewhere', async () => {
    const page = await browser!.open(`/sessions/${session}`, { service });
    const { body } = await service.get(`/v1/sessions/${session}?limit=1`);
    const last = body.data.turn_count as number;
    await turn(page, last).waitFor();
    await page.getByRole('link', { name: 'System' }).click();
    await page.getByRole('heading', { name: 'System', level: 1 }).waitFor();
    await run(`Question ${last + 1}`, session);
    await page.goBack();
    await turn(page, last + 1)
      .getByText(`Question ${last + 1}`)
      .waitFor();
    expect(page.problems).toEqual([]);
  });
});

describeInBrowser('an erased session', () => {
  test('says so, and a fork of it that its first turns are gone', async () => {
    const session = await run('A secret');
    const { body } = await service.post(`/v1/sessions/${session}/fork`, { at_turn: 1 });
    const fork = body.data.session_id as string;
    await run('Of the fork', fork);
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    const page = await browser!.open(`/sessions/${session}`, { service });
    await page.getByRole('heading', { name: 'This session was erased' }).waitFor();
    expect(await page.inspect('erased')).toEqual([]);
    await page.goto(`${service.url}/console/sessions/${fork}`);
    await turn(page, 2).getByText('Of the fork').waitFor();
    await page.getByText('Turns that this fork shares were erased.').waitFor();
    expect(await turn(page, 1).count()).toBe(0);
    expect(await page.inspect('origin-erased')).toEqual([]);
    expect(page.problems).toEqual([]);
  });
});

describeInBrowser('texts that would run a script', () => {
  test('are shown as text wherever they appear', async () => {
    const all = XSS_PAYLOADS.join('\n\n');
    service.model.use([
      {
        reasoning: all,
        tool_calls: [
          {
            id: XSS_PAYLOADS[0]!,
            name: 'calculator',
            arguments: JSON.stringify({ expression: all }),
          },
          { name: 'calculator_<img src=x onerror=window.__xss=1>', arguments: all },
        ],
      },
      { text: all, reasoning: all, model: `<img src=x onerror="window.__xss=1">` },
      { status: 400, body: { error: { message: all } } },
    ]);
    const session = await run(all);
    await run(all, session);
    service.model.use({ text: 'Hello.' });
    const title = XSS_PAYLOADS[2]!;
    await service.send('PATCH', `/v1/sessions/${session}`, {
      title,
      labels: Object.fromEntries(
        XSS_PAYLOADS.slice(0, 20).map((text, at) => [`l${at}`, text.slice(0, 100)]),
      ),
    });
    const page = await browser!.open('/sessions', { service });
    await page.getByRole('link', { name: title }).click();
    await turn(page, 2).waitFor();
    for (const details of await page.locator('article details').all())
      await details.locator('summary').click();
    await turn(page, 1).getByRole('button', { name: 'Requests' }).click();
    await page.getByRole('dialog').getByText('Hash matches').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Timeline' }).click();
    await turn(page, 1).getByRole('listitem').first().waitFor();
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    const revisions = await page.getByRole('article').getByRole('link').allInnerTexts();
    for (const revision of revisions) {
      const event = page.getByRole('article', { name: `Event ${revision}`, exact: true });
      await event.getByRole('link').click();
      await event.getByRole('button', { name: 'Copy JSON' }).waitFor();
    }
    expect(await page.evaluate('window.__xss')).toBeUndefined();
    expect(page.problems).toEqual([]);
  });
});
