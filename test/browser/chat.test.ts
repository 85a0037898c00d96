/** Chat with an agent, as a person uses it: streams, tools, failures, and sessions side by side. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import type { Step } from '../support/fakes/scriptedModel.ts';
import { chunkOf } from '../support/fakes/scriptedStream.ts';
import { startTestService } from '../support/http/service.ts';
import { openEvents } from '../support/http/sse.ts';

const service = await startTestService();
const browser = await startConsoleBrowser('chat');
afterAll(async () => {
  await browser?.close();
  await service.close();
});
const withBrowser = browser ? test : test.skip;

/** An answer of which the second part comes only after `release`. */
function heldAnswer(first: string, rest: string): { step: Step; release: () => void } {
  const gate = Promise.withResolvers<void>();
  const respond = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunkOf({ content: first }));
    const end = `${chunkOf({ content: rest })}${chunkOf({}, { finish_reason: 'stop' })}data: [DONE]\n\n`;
    void gate.promise.then(() => response.end(end));
  };
  return { step: { respond }, release: gate.resolve };
}

/** Elements and addresses that a text must not become. */
const HARMFUL =
  'article :is(script, img, svg:not(.lucide), iframe, object, form, input, style, meta, base, [onerror], [onload])';

const composer = (page: ConsolePage) => page.getByLabel('Message');
async function say(page: ConsolePage, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press('Enter');
}
const sessionsIn = (page: ConsolePage): string[] =>
  (new URL(page.url()).searchParams.get('sessions') ?? '').split(',');
const turnsOf = async (sessionId: string) =>
  (await service.get(`/v1/sessions/${sessionId}`)).body.data.turns;

/** The runs that a page starts: the idempotency keys. */
function watchRuns(page: ConsolePage): string[] {
  const keys: string[] = [];
  page.on('request', (request) => {
    const key = request.headers()['idempotency-key'];
    if (request.url().endsWith('/run') && key !== undefined) keys.push(key);
  });
  return keys;
}

async function inspectEverywhere(path: string, name: string, text: string): Promise<void> {
  const wait = (page: ConsolePage) => page.getByText(text).first().waitFor();
  expect(await browser!.inspectLooks(path, { service, name, wait })).toEqual([]);
}

withBrowser(
  'shows reasoning, tool calls and the answer as they come, and then the usage',
  async () => {
    const agentId = await service.createAgent({ name: 'Sums', tool: 'calculator' });
    const held = heldAnswer('It is ', '**408**.');
    service.model.use([
      {
        text: 'Let me see.',
        reasoning: 'A product is needed.',
        tool_calls: [{ name: 'calculator', arguments: '{"expression":"12*34"}' }],
      },
      held.step,
    ]);
    const page = await browser!.open(`/chat/${agentId}`, { service });
    await page.getByText('A new session with Sums').waitFor();
    await composer(page).fill('What is');
    await composer(page).press('Shift+Enter');
    await page.keyboard.type('12*34?');
    await page.keyboard.press('Enter');
    const turn = page.getByRole('article', { name: 'Turn 1' });
    await turn.getByText('It is').waitFor();
    // The first model call and its tool are there before the second has ended.
    await turn.getByText('Answering…').waitFor();
    expect(await turn.innerText()).toContain('What is\n12*34?');
    expect(await turn.innerText()).toContain('Let me see.');
    expect(await turn.getByText('A product is needed.').isVisible()).toBe(false);
    await turn.getByText('Reasoning').click();
    expect(await turn.getByText('A product is needed.').isVisible()).toBe(true);
    expect(await turn.getByLabel('Result').isVisible()).toBe(false);
    await turn.locator('summary', { hasText: 'calculator' }).click();
    expect(await turn.getByLabel('Arguments').innerText()).toContain('"12*34"');
    expect(await turn.getByLabel('Result').innerText()).toContain('408');
    held.release();
    await turn.locator('strong', { hasText: '408' }).waitFor();
    await turn.getByText(/\+ [\d,]+ tokens/).waitFor();
    expect(await turn.getByText('Answering…').count()).toBe(0);
    const [sessionId] = sessionsIn(page);
    expect(await turnsOf(sessionId!)).toMatchObject([
      { input: 'What is\n12*34?', output: 'It is **408**.', status: 'completed' },
    ]);
    // The next message continues the session.
    service.model.use({ text: 'And again.' });
    await say(page, 'Once more');
    await page.getByRole('article', { name: 'Turn 2' }).getByText('And again.').waitFor();
    expect(sessionsIn(page)).toEqual([sessionId]);
    expect(await turnsOf(sessionId!)).toHaveLength(2);
    await page.getByRole('link', { name: 'Open session' }).click();
    expect(page.url()).toContain(`/console/sessions/${sessionId}`);
    expect(page.problems).toEqual([]);
    await inspectEverywhere(`/chat/${agentId}?sessions=${sessionId}`, 'conversation', 'And again.');
    await inspectEverywhere(`/chat/${agentId}`, 'start', 'A new session with Sums');
  },
);

withBrowser('stops an answer with Escape or with the button, and keeps what has come', async () => {
  const agentId = await service.createAgent({ name: 'Talker' });
  service.model.use([heldAnswer('Once upon', '').step, heldAnswer('A second', '').step]);
  const page = await browser!.open(`/chat/${agentId}`, { service });
  await say(page, 'Tell me a story');
  await page.getByText('Once upon').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('article', { name: 'Turn 1' }).getByRole('alert').waitFor();
  expect(await page.getByText('Once upon').isVisible()).toBe(true);
  const [sessionId] = sessionsIn(page);
  expect(await turnsOf(sessionId!)).toMatchObject([
    { status: 'interrupted', error: { reason: 'cancelled' } },
  ]);
  expect(await page.inspect('stopped')).toEqual([]);
  await say(page, 'Another');
  await page.getByText('A second').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('article', { name: 'Turn 2' }).getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  expect(page.problems).toEqual([]);
});

withBrowser(
  'says what to try after a failure that is recorded, and tries it as a new turn',
  async () => {
    const agentId = await service.createAgent({ name: 'Fragile' });
    service.model.use([{ status: 400 }, { text: 'Now it works.' }]);
    const page = await browser!.open(`/chat/${agentId}`, { service });
    const keys = watchRuns(page);
    await say(page, 'Hello');
    const alert = page.getByRole('article', { name: 'Turn 1' }).getByRole('alert');
    await alert.getByText('Try again with a new turn').waitFor();
    expect(await page.inspect('failure')).toEqual([]);
    await alert.getByRole('button', { name: 'Edit the message' }).click();
    expect(await composer(page).inputValue()).toBe('Hello');
    await composer(page).fill('');
    await alert.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('article', { name: 'Turn 2' }).getByText('Now it works.').waitFor();
    expect(await alert.getByRole('button').count()).toBe(0);
    const [sessionId] = sessionsIn(page);
    expect(await turnsOf(sessionId!)).toMatchObject([
      { input: 'Hello', status: 'failed' },
      { input: 'Hello', status: 'completed' },
    ]);
    expect(new Set(keys).size).toBe(2);
    expect(page.problems).toEqual([]);
    const failed = await browser!.open(`/chat/${agentId}?sessions=${sessionId}`, { service });
    await failed.getByRole('article', { name: 'Turn 1' }).getByRole('alert').waitFor();
  },
);

withBrowser('sends the same request once more where the API advises it', async () => {
  const agentId = await service.createAgent({ name: 'Busy' });
  service.model.use({ text: 'Here I am.' });
  const page = await browser!.open(`/chat/${agentId}`, { service });
  const keys = watchRuns(page);
  let isBusy = true;
  await page.route('**/run', async (route) => {
    if (!isBusy) return route.continue();
    isBusy = false;
    const failure = { success: false, error: 'Too busy.', code: 'overloaded', retry: 'same_key' };
    return route.fulfill({ status: 503, json: { ...failure, status: 503, request_id: 'r' } });
  });
  await say(page, 'Hello');
  const alert = page.getByRole('article').getByRole('alert');
  await alert.getByText('The message is not sent twice').waitFor();
  await alert.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Here I am.').waitFor();
  expect(await page.getByRole('article').count()).toBe(1);
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
  expect(await turnsOf(sessionsIn(page)[0]!)).toHaveLength(1);
});

withBrowser('does not offer to repeat what would fail again', async () => {
  const agentId = await service.createAgent({ name: 'Gone' });
  const page = await browser!.open(`/chat/${agentId}`, { service });
  await page.getByText('A new session with Gone').waitFor();
  await service.send('DELETE', `/v1/agents/${agentId}`, '');
  await say(page, 'Hello');
  const alert = page.getByRole('article').getByRole('alert');
  await alert.getByText('would fail again').waitFor();
  expect(await alert.getByRole('button', { name: 'Try again' }).count()).toBe(0);
});

withBrowser('says so when there is no such agent', async () => {
  const page = await browser!.open(`/chat/agent_${'0'.repeat(26)}`, { service });
  await page.getByRole('alert').getByText('agent_not_found').waitFor();
  await page.getByRole('heading', { name: 'Chat', level: 1 }).waitFor();
  expect(await page.inspect('unknown-agent')).toEqual([]);
  expect(page.problems).toEqual([]);
});

/** A way to the service that can be cut. */
async function startCuttable(): Promise<{ url: string; cut: () => void; close: () => void }> {
  const { hostname, port } = new URL(service.url);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    close: () => {
      cut();
      server.close();
    },
  };
}

withBrowser('continues a stream that was cut after its last event', async () => {
  const agentId = await service.createAgent({ name: 'Cut' });
  const held = heldAnswer('First half, ', 'second half.');
  service.model.use(held.step);
  const before = service.model.requests.length;
  const proxy = await startCuttable();
  const page = await browser!.open(`/chat/${agentId}`, {
    service: { ...service, url: proxy.url },
  });
  const resumed: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/stream')) resumed.push(request.headers()['last-event-id']);
  });
  await say(page, 'Go');
  await page.getByText('First half,').waitFor();
  proxy.cut();
  held.release();
  await page.getByText('First half, second half.').waitFor();
  await page.getByText(/tokens/).waitFor();
  expect(resumed.length).toBeGreaterThan(0);
  expect(new Set(resumed)).toEqual(new Set(['1-1-12']));
  expect(service.model.requests.length).toBe(before + 1);
  proxy.close();
  expect(page.problems).toEqual([]);
});

withBrowser('has several sessions side by side, and one at a time on a phone', async () => {
  const agentId = await service.createAgent({ name: 'Twins' });
  const [one, two] = [heldAnswer('One ', 'ends.'), heldAnswer('Two ', 'ends.')];
  service.model.use(({ messages }) =>
    JSON.stringify(messages).includes('first') ? one.step : two.step,
  );
  const page = await browser!.open(`/chat/${agentId}`, { service });
  await say(page, 'first');
  await page.getByText('One').waitFor();
  await page.getByRole('button', { name: 'New session', exact: true }).click();
  const fresh = page.getByRole('region', { name: 'New session' });
  await fresh.getByLabel('Message').fill('second');
  await fresh.getByLabel('Message').press('Enter');
  await page.getByText('Two').waitFor();
  await page.getByText('Answering…').nth(1).waitFor();
  one.release();
  two.release();
  await page.getByText('One ends.').waitFor();
  await page.getByText('Two ends.').waitFor();
  const ids = sessionsIn(page);
  expect(ids).toHaveLength(2);
  for (const id of ids) expect(await turnsOf(id)).toHaveLength(1);
  // A new session after that is an empty one, and not the pane that began under its name.
  await page.getByRole('button', { name: 'New session', exact: true }).click();
  await page.getByRole('region', { name: 'New session' }).getByText('A new session with').waitFor();
  await page.getByRole('button', { name: 'New session', exact: true }).click();
  await page.getByText('4 sessions fit side by side.').waitFor();
  expect(await page.getByRole('button', { name: 'New session', exact: true }).isDisabled()).toBe(
    true,
  );
  await page.getByRole('button', { name: 'Close New session' }).first().click();
  await page.getByRole('button', { name: 'Close New session' }).click();
  expect(sessionsIn(page)).toEqual(ids);
  expect(page.problems).toEqual([]);

  const path = `/chat/${agentId}?sessions=${ids.join(',')}`;
  await inspectEverywhere(path, 'side-by-side', 'One ends.');
  const phone = await browser!.open(path, { service, isPhone: true });
  const left = async (text: string): Promise<number> =>
    (await phone.getByText(text).boundingBox())!.x;
  await phone.getByText('Two ends.').waitFor();
  expect(await left('One ends.')).toBeLessThan(390);
  expect(await left('Two ends.')).toBeGreaterThan(360);
  await phone.getByText('Two ends.').scrollIntoViewIfNeeded();
  expect(await left('One ends.')).toBeLessThan(0);
  expect(await left('Two ends.')).toBeLessThan(390);
});

withBrowser(
  'opens a session with the latest of its turns, and links to the earlier ones',
  async () => {
    const agentId = await service.createAgent({ name: 'Long' });
    service.model.use({ text: 'Yes.' });
    let session_id: string | undefined;
    for (let turn = 1; turn <= 53; turn += 1) {
      const { body } = await service.post(`/v1/agents/${agentId}/run`, {
        input: `Question ${turn}`,
        session_id: session_id ?? null,
      });
      session_id = body.data.session_id as string;
    }
    const page = await browser!.open(`/chat/${agentId}?sessions=${session_id}`, { service });
    await page.getByRole('article', { name: 'Turn 53', exact: true }).waitFor();
    expect(await page.getByRole('article').count()).toBe(50);
    const earlier = await page.getByRole('link', { name: 'Earlier turns' }).getAttribute('href');
    expect(earlier).toBe(`/console/sessions/${session_id}`);
    await say(page, 'Question 54');
    await page.getByRole('article', { name: 'Turn 54' }).getByText('Yes.').waitFor();
    expect(page.problems).toEqual([]);
  },
);

withBrowser('follows a turn that another client has started', async () => {
  const agentId = await service.createAgent({ name: 'Shared' });
  const held = heldAnswer('Under way, ', 'done.');
  service.model.use(held.step);
  const run = await openEvents(`${service.url}/v1/agents/${agentId}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': service.key },
    body: JSON.stringify({ input: 'From elsewhere' }),
  });
  const { value: started } = await run.events.next();
  const path = `/chat/${agentId}?sessions=${started!.data.session_id}`;
  const page = await browser!.open(path, { service });
  await page.getByText('Under way,').waitFor();
  held.release();
  await page.getByText('Under way, done.').waitFor();
  run.leave();
  expect(page.problems).toEqual([]);
});

withBrowser('does not move what a person reads while an answer grows', async () => {
  const agentId = await service.createAgent({ name: 'Long answers' });
  const lines = Array.from({ length: 120 }, (_, at) => `Line ${at}.`).join('\n\n');
  const held = heldAnswer(`${lines}\n\n`, `${lines}\n\nThe end.`);
  service.model.use(held.step);
  const page = await browser!.open(`/chat/${agentId}`, { service });
  await say(page, 'Write a lot');
  await page.getByText('Line 119.').waitFor();
  const scrollOf = () => page.evaluate<number>("document.querySelector('[role=log]').scrollTop");
  // The end is in view, since the reader was there.
  expect(await scrollOf()).toBeGreaterThan(1_000);
  await page.evaluate("document.querySelector('[role=log]').scrollTop = 300");
  await page.getByRole('button', { name: 'Latest' }).waitFor();
  held.release();
  await page.getByText(/tokens/).waitFor();
  expect(await scrollOf()).toBe(300);
  await page.getByRole('button', { name: 'Latest' }).click();
  await page.getByRole('button', { name: 'Latest' }).waitFor({ state: 'detached' });
  expect(await page.getByText('The end.').isVisible()).toBe(true);
  expect(page.problems).toEqual([]);
});

withBrowser('shows what a model, a tool and a person say as text', async () => {
  const agentId = await service.createAgent({ name: XSS_PAYLOADS[2], tool: 'calculator' });
  const payloads = XSS_PAYLOADS.join('\n\n');
  service.model.use([
    {
      text: payloads,
      reasoning: payloads,
      tool_calls: [
        { name: 'calculator', arguments: JSON.stringify({ expression: payloads }) },
        { name: XSS_PAYLOADS[2]!, arguments: payloads },
      ],
    },
    { text: payloads },
  ]);
  const page = await browser!.open(`/chat/${agentId}`, { service });
  await page.getByText(XSS_PAYLOADS[2]!).first().waitFor();
  await say(page, payloads);
  await page.getByText(/\+ [\d,]+ tokens/).waitFor();
  const look = async (opened: ConsolePage): Promise<void> => {
    for (const summary of await opened.locator('summary').all()) await summary.click();
    expect(await opened.locator(HARMFUL).count()).toBe(0);
    expect(await opened.evaluate('window.__xss')).toBeUndefined();
    expect(opened.problems).toEqual([]);
  };
  await look(page);
  expect(await page.getByLabel('Arguments').last().innerText()).toBe(payloads);

  // One turn for each, since some would swallow those that follow.
  const written = '<p title="a&amp;b">An entity is written as &amp;lt; here.</p>';
  const texts = [...XSS_PAYLOADS, written, 'A [link](https://example.com/safe).'];
  service.model.use((_request, index) => ({ text: texts[index]!, reasoning: texts[index]! }));
  const [session_id] = sessionsIn(page);
  for (const input of texts) await service.post(`/v1/agents/${agentId}/run`, { input, session_id });
  const loaded = await browser!.open(`/chat/${agentId}?sessions=${session_id}`, { service });
  await loaded.getByRole('link', { name: 'link' }).waitFor();
  expect(await loaded.getByRole('article').count()).toBe(1 + texts.length);
  // The last of them is the answer; the others are the reasoning and the input.
  expect(await loaded.locator('.markdown').getByText(written, { exact: true }).count()).toBe(1);
  await look(loaded);
  const targets = await loaded.evaluate<string[]>(
    "[...document.querySelectorAll('.markdown a[href]')].map((link) => link.href)",
  );
  // A picture is its description, which leads nowhere.
  expect(new Set(targets)).toEqual(new Set(['https://example.com/safe']));
});

withBrowser('shows what the offline model does: tools, reasoning, failures', async () => {
  const offline = await startTestService({ text: '' }, { MODELS_FILE: '' });
  const { body } = await offline.post('/v1/agents', {
    name: 'Offline',
    instruction: 'Be brief.',
    model: 'offline-echo',
    tool: 'calculator',
  });
  const page = await browser!.open(`/chat/${body.data.agent_id}`, { service: offline });
  await say(page, '/reason /call calculator {"expression":"6*7"} /slow 5 What is it?');
  await page.locator('summary', { hasText: 'calculator' }).waitFor();
  await page.getByText('Reasoning').first().waitFor();
  await page.getByText(/tokens/).waitFor();
  await say(page, '/fail 429');
  await page.getByRole('article', { name: 'Turn 2' }).getByRole('alert').waitFor();
  expect(await page.inspect('offline')).toEqual([]);
  expect(page.problems).toEqual([]);
  await offline.close();
});
