/** The list of sessions: filters, search, live updates, and lists of any length. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { startTestService } from '../support/http/service.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('sessions');
afterAll(async () => {
  await browser?.close();
  await service.close();
});
const describeInBrowser = browser ? describe : describe.skip;

/** Runs the agent once, and returns the id of the session. */
async function run(agent: string, input: string, session_id?: string): Promise<string> {
  const body = { input, ...(session_id !== undefined && { session_id }) };
  const { body: answer } = await service.post(`/v1/agents/${agent}/run`, body);
  return (answer.data?.session_id ?? answer.session_id) as string;
}

const describeSession = (id: string, body: object) =>
  service.send('PATCH', `/v1/sessions/${id}`, body);

const sessionLink = (page: ConsolePage, name: string) =>
  page.getByRole('region', { name: 'Sessions' }).getByRole('link', { name, exact: true });

/** The titles on screen, from top to bottom. */
async function titles(page: ConsolePage): Promise<string[]> {
  const rows = page.getByRole('region', { name: 'Sessions' }).locator('[data-index]');
  const found = await rows.evaluateAll((elements) =>
    (
      elements as unknown as {
        dataset: { index: string };
        querySelector(selector: string): { textContent: string } | null;
      }[]
    )
      .toSorted((a, b) => Number(a.dataset.index) - Number(b.dataset.index))
      .map((row) => row.querySelector('a')?.textContent ?? ''),
  );
  return found.filter((title) => title !== '');
}

const scrollTo = (page: ConsolePage, top: number | 'end') =>
  page.evaluate(
    `(() => { const list = document.querySelector('[aria-label=Sessions]'); list.scrollTop = ${top === 'end' ? 'list.scrollHeight' : top}; })()`,
  );

let support: string;
let sales: string;
beforeAll(async () => {
  support = await service.createAgent({ name: 'Support' });
  sales = await service.createAgent({ name: 'Sales' });
});

describeInBrowser('an account without sessions', () => {
  test('says what to do first', async () => {
    const page = await browser!.open('/sessions', { service });
    await page.getByRole('heading', { name: 'No sessions yet' }).waitFor();
    expect(await page.inspect('empty')).toEqual([]);
    await page.getByRole('link', { name: 'Choose an agent' }).click();
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
    expect(page.problems).toEqual([]);
  });
});

describeInBrowser('a list of sessions', () => {
  let refund: string;
  beforeAll(async () => {
    refund = await run(support, 'Where is my refund?');
    await describeSession(refund, {
      title: 'A refund',
      labels: { customer: '4711', tier: 'gold' },
    });
    await run(support, 'Order 12 has not arrived', refund);
    const offer = await run(sales, 'Send me an offer');
    await describeSession(offer, { title: 'An offer' });
    service.model.use({ status: 500, body: {} });
    const failed = await run(sales, 'This fails');
    await describeSession(failed, { title: 'A failure' });
    service.model.use({ text: 'Hello.' });
  });

  test.each([
    ['list-light', {}],
    ['list-dark', { theme: 'dark' }],
    ['list-phone', { isPhone: true }],
  ] as const)('is shown newest first: %s', async (name, options) => {
    const page = await browser!.open('/sessions', { service, ...options });
    await sessionLink(page, 'A failure').waitFor();
    expect(await titles(page)).toEqual(['A failure', 'An offer', 'A refund']);
    await page.getByText('3 sessions').waitFor();
    await page.getByText('Support').nth(1).waitFor();
    expect(await page.inspect(name)).toEqual([]);
    expect(
      await page.evaluate(
        'document.documentElement.scrollWidth <= document.documentElement.clientWidth',
      ),
    ).toBe(true);
    expect(page.problems).toEqual([]);
  });

  test('is narrowed by filters, which are part of the address', async () => {
    const page = await browser!.open('/sessions', { service });
    await page.getByLabel('Agent', { exact: true }).selectOption('Sales');
    await page.getByText('2 sessions').waitFor();
    await page.getByLabel('Outcome').selectOption('With a failed turn');
    await page.getByText('1 session', { exact: true }).waitFor();
    expect(await titles(page)).toEqual(['A failure']);
    const address = new URL(page.url());
    expect(address.searchParams.get('agent_id')).toBe(sales);
    expect(address.searchParams.get('outcome')).toBe('failed');

    await page.reload();
    await page.getByText('1 session', { exact: true }).waitFor();
    expect(await titles(page)).toEqual(['A failure']);
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('3 sessions').waitFor();

    await page.getByRole('button', { name: 'More filters' }).click();
    await page.getByLabel('Labels').fill('4711');
    await page.getByText('Write name:value').waitFor();
    await page.getByLabel('Labels').fill('customer:4711, tier:gold');
    await page.getByText('1 session', { exact: true }).waitFor();
    expect(await titles(page)).toEqual(['A refund']);
    expect(await page.inspect('filters')).toEqual([]);
    expect(new URL(page.url()).searchParams.get('label')).toBe('["customer:4711","tier:gold"]');
    await page.getByLabel('Labels').fill('');
    await page.getByText('3 sessions').waitFor();

    await page.getByLabel('Began at or after').fill('2099-01-01T10:00');
    await page.getByRole('heading', { name: 'No session matches' }).waitFor();
    const from = new URL(page.url()).searchParams.get('created_from')!;
    expect(new Date(from).getTime()).toBe(new Date('2099-01-01T10:00').getTime());
    expect(await page.inspect('no-match')).toEqual([]);
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByText('3 sessions').waitFor();
    await page.getByLabel('Status').selectOption('Running');
    await page.getByRole('heading', { name: 'No session matches' }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test('is searched by words, and leads to the turns that have them', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'A failure').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('arrived order');
    await page.getByText('1 session', { exact: true }).waitFor();
    // The reader can go on typing.
    await page.locator('input[type=search]:focus').waitFor();
    expect(await titles(page)).toEqual(['A refund']);
    expect(await page.inspect('search')).toEqual([]);
    await page.getByRole('link', { name: 'turn 2' }).click();
    await page.getByRole('article', { name: 'Turn 2' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/console/sessions/${refund}`);
    expect(new URL(page.url()).search).toBe('?turn=2');
    expect(page.problems).toEqual([]);
  });

  test('says what is wrong with a search', async () => {
    const page = await browser!.open('/sessions?q=%22%3F%3F%22', { service });
    await page.getByRole('alert').getByText('"q" must have a letter or a digit').waitFor();
    expect(page.problems).toEqual([]);
  });

  test('says until when the index of words is complete', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'A failure').waitFor();
    await page.route('**/v1/sessions?*q=refund*', async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as object;
      const index = { complete_until: '2026-11-20T09:30:00.000Z' };
      await route.fulfill({ response, json: { ...body, index } });
    });
    await page.getByRole('searchbox').fill('refund');
    await page.getByText('The search index is behind.').waitFor();
    await page.locator('time[datetime="2026-11-20T09:30:00.000Z"]').waitFor();
  });

  test('is walked through with j, k and Enter', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'A failure').waitFor();
    for (const key of ['j', 'j', 'j', 'k']) {
      await page.keyboard.press(key);
      await page.evaluate('new Promise((done) => requestAnimationFrame(done))');
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'An offer', level: 1 }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test('says why it is closed to a key without the scope', async () => {
    const { body } = await service.post('/v1/keys', { name: 'narrow', scopes: ['agents:read'] });
    const page = await browser!.open('/sessions', { service, key: body.data.api_key });
    await page.getByRole('heading', { name: 'This view is closed to your key' }).waitFor();
    await page.getByText('sessions:read').waitFor();
    expect(await page.inspect('forbidden')).toEqual([]);
  });
});

describeInBrowser('new sessions', () => {
  test('come in at the top while one looks at it', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'A failure').waitFor();
    const id = await run(support, 'New');
    await describeSession(id, { title: 'Just begun' });
    await sessionLink(page, 'Just begun').waitFor();
    expect((await titles(page))[0]).toBe('Just begun');
    expect(page.problems).toEqual([]);
  });

  test('do not move the row that has the focus, also after a dialog', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'Just begun').waitFor();
    await page.keyboard.press('j');
    // The focus moves with the next frame, and not at all once a dialog is in front.
    await page.locator('a:focus', { hasText: 'Just begun' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await describeSession(await run(support, 'Meanwhile'), { title: 'Meanwhile' });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Just begun');
    expect(page.problems).toEqual([]);
  });

  test('are counted while one has paused the list', async () => {
    const page = await browser!.open('/sessions', { service });
    await sessionLink(page, 'Meanwhile').waitFor();
    await page.getByRole('button', { name: 'Pause updates' }).click();
    const before = await titles(page);
    for (const title of ['First', 'Second'])
      await describeSession(await run(support, title), { title });
    const button = page.getByRole('button', { name: '2 new' });
    await button.waitFor();
    expect(await titles(page)).toEqual(before);
    expect(await page.inspect('new')).toEqual([]);
    await button.click();
    await sessionLink(page, 'Second').waitFor();
    expect(await titles(page)).toEqual(['Second', 'First', ...before]);
    await page.getByRole('button', { name: 'Resume updates' }).click();
    await describeSession(await run(support, 'Third'), { title: 'Third' });
    await sessionLink(page, 'Third').waitFor();
    expect(page.problems).toEqual([]);
  });

  test('show their progress in place', async () => {
    const page = await browser!.open('/sessions?q=refund', { service });
    await sessionLink(page, 'A refund').waitFor();
    const { body } = await service.get('/v1/sessions?order=oldest&limit=1');
    await describeSession(body.data[0].session_id as string, { title: 'A refund, paid' });
    await sessionLink(page, 'A refund, paid').waitFor();
    await describeSession(body.data[0].session_id as string, { title: 'A refund' });
  });
});

describeInBrowser('a list of 3,000 sessions', () => {
  const COUNT = 3_000;
  beforeAll(async () => {
    const { body } = await service.get('/v1/sessions?order=oldest&limit=1');
    const path = `/v1/sessions/${body.data[0].session_id as string}/fork`;
    for (let done = 0; done < COUNT; done += 100)
      await Promise.all(Array.from({ length: 100 }, () => service.post(path, { at_turn: 1 })));
  }, 120_000);

  test('has few rows in the document, and its last row can be reached', async () => {
    const page = await browser!.open('/sessions', { service });
    await page.getByText('loaded, more below').waitFor();
    const rows = page.getByRole('region', { name: 'Sessions' }).locator('[data-index]');
    for (let most = 0; !(await sessionLink(page, 'A refund').isVisible());) {
      await scrollTo(page, 'end');
      await page.evaluate('new Promise((done) => requestAnimationFrame(done))');
      most = Math.max(most, await rows.count());
      expect(most).toBeLessThan(60);
    }
    await page.getByText(/^3,0\d\d sessions$/).waitFor();
    expect(await page.inspect('end')).toEqual([]);

    // A place in the middle, whose page was dropped meanwhile.
    await scrollTo(page, 1_500 * 44);
    await page.locator('[data-index="1500"] a').waitFor();
    expect(page.problems).toEqual([]);
  });

  test('reads the names of agents once, also with a key that may not', async () => {
    const { body } = await service.post('/v1/keys', { name: 'rows', scopes: ['sessions:read'] });
    const page = await browser!.open('/sessions', { service, key: body.data.api_key as string });
    let reads = 0;
    page.on('request', (request) => {
      if (request.url().includes('/v1/agents')) reads += 1;
    });
    await page.getByText('loaded, more below').waitFor();
    for (const row of [60, 90, 120, 150]) {
      await scrollTo(page, row * 44);
      await page.locator(`[data-index="${row}"] a`).waitFor();
      await page.waitForLoadState('networkidle');
    }
    expect(reads).toBeLessThanOrEqual(1);
    expect(page.problems).toEqual([]);
  });

  test('does not move where one reads when sessions begin', async () => {
    const page = await browser!.open('/sessions', { service });
    await page.getByText('loaded, more below').waitFor();
    await scrollTo(page, 40 * 44);
    await page.locator('[data-index="50"] a').waitFor();
    const link = () => page.locator('[data-index="50"] a').getAttribute('href');
    const before = await link();
    await describeSession(await run(support, 'Now'), { title: 'Begun meanwhile' });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    // Long enough that the rows on screen are read again.
    const again = page.waitForResponse((response) => response.url().includes('created_to='));
    await again;
    expect(await link()).toBe(before);
    await page.getByRole('button', { name: '1 new' }).click();
    await sessionLink(page, 'Begun meanwhile').waitFor();
    expect(page.problems).toEqual([]);
  });
});
