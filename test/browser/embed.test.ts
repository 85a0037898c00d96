/** `<turnlog-chat>` on the page of another host, as its visitors use it. */
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { startEmbeddedChat } from '../support/browser/embed.ts';
import type { Step } from '../support/fakes/scriptedModel.ts';

const MAX_GZIP_BYTES = 60_000;
const HELLO = { text: 'Hello. How can I help?' };
const ANSWER = `Your order **4711** left our warehouse. The total is 408.

1. It arrives on *Friday*.
2. [Track it](https://example.com/track)

| Item | Pieces | Price |
| --- | --- | --- |
| Teapot | 12 | 34.00 |

\`\`\`js
const total = 12 * 34;
\`\`\`
`;

const chat = await startEmbeddedChat(HELLO);
afterAll(async () => {
  await chat?.[Symbol.asyncDispose]();
});
beforeEach(() => chat?.service.model.use(HELLO));
const withBrowser = chat ? test : test.skip;

/** Written word by word for about that long. */
const slowly = (words: number, pauseMs = 50): Step => {
  const pieces = Array.from({ length: words }, (_, at) => `word${at} `);
  return { text: pieces.join(''), pieces, piece_delay_ms: pauseMs };
};
const lastWord = (words: number): string => `word${words - 1}`;

const withTool: readonly Step[] = [
  { tool_calls: [{ name: 'calculator', arguments: '{"expression":"12*34"}' }] },
  { text: ANSWER },
];

for (const [name, options] of [
  ['light', {}],
  ['dark', { theme: 'dark' }],
  ['phone', { isPhone: true }],
  ['phone-dark', { theme: 'dark', isPhone: true }],
] as const)
  withBrowser(`answers a visitor, and shows tool calls and Markdown (${name})`, async () => {
    const page = await chat!.visit(options);
    await page.getByText('Write a message to begin.').waitFor();
    if (name === 'light' || name === 'phone-dark')
      expect(await page.inspect(`empty-${name}`)).toEqual([]);
    chat!.service.model.use(withTool);
    await page.ask('Where is my order, and what are 12 teapots at 34?');
    await page.getByText('It arrives on').waitFor();
    await page.getByText('Used calculator').click();
    await page.getByText('408', { exact: true }).waitFor();
    expect(await page.getByRole('link', { name: 'Track it' }).getAttribute('rel')).toBe(
      'noopener noreferrer nofollow',
    );
    expect(await page.inspect(`answer-${name}`)).toEqual([]);
    const fits = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
    expect(await page.evaluate(fits)).toBe(true);
    expect(page.problems).toEqual([]);
    // No API key reaches the browser.
    const credentials = [...page.credentials];
    expect(credentials.length).toBeGreaterThan(0);
    for (const credential of credentials) expect(credential).toMatch(/^tlc_/);
    await page.context().close();
  });

withBrowser('continues its session after a reload, and begins another one on request', async () => {
  const page = await chat!.visit();
  await page.ask('First question');
  await page.getByText(HELLO.text).waitFor();
  await page.reload();
  await page.getByText('First question').waitFor();
  await page.getByText(HELLO.text).waitFor();
  chat!.service.model.use((request) => ({ text: `It has ${request.messages.length} messages.` }));
  await page.ask('Second question');
  await page.getByText('It has 4 messages.').waitFor();
  await page.getByRole('button', { name: 'New chat' }).click();
  await page.getByText('Write a message to begin.').waitFor();
  expect(await page.getByText('First question').count()).toBe(0);
  await page.ask('Third question');
  await page.getByText('It has 2 messages.').waitFor();
  await page.context().close();
});

withBrowser('goes on showing an answer that is being written when it is reloaded', async () => {
  const page = await chat!.visit();
  chat!.service.model.use(slowly(60));
  await page.ask('Count');
  await page.getByText('word3 ').waitFor();
  await page.reload();
  await page.getByText(lastWord(60)).waitFor();
  expect(await page.getByText('word0 word1 word2').count()).toBe(1);
  await page.context().close();
});

withBrowser('is used with the keyboard, and stops an answer', async () => {
  const page = await chat!.visit();
  chat!.service.model.use(slowly(400));
  const input = page.getByLabel('Message');
  await input.focus();
  await page.keyboard.type('One line');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('and another');
  await page.keyboard.press('Enter');
  await page.getByText('word2 ').waitFor();
  expect(await page.getByRole('status').textContent()).toBe('The answer is being written.');
  expect(await page.inspect('writing')).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByText('Stopped.').first().waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  expect(await page.getByText(lastWord(400)).count()).toBe(0);
  // The button does the same.
  await page.ask('Again');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  chat!.service.model.use(HELLO);
  await page.ask('And now?');
  await page.getByText(HELLO.text).waitFor();
  await page.context().close();
});

withBrowser('keeps what a reader looks at in its place while an answer is written', async () => {
  const page = await chat!.visit();
  chat!.service.model.use({
    text: Array.from({ length: 40 }, (_, at) => `Line ${at}.`).join('\n\n'),
  });
  await page.ask('Write much');
  await page.getByText('Line 39.').waitFor();
  chat!.service.model.use(slowly(120, 20));
  await page.ask('More');
  await page.getByText('word1 ').waitFor();
  const log = page.getByRole('log');
  await log.evaluate((element: any) => (element.scrollTop = 300));
  const top = (): Promise<number> => log.evaluate((element: any) => element.scrollTop as number);
  const marked = page.getByText('Line 12.');
  const place = await marked.boundingBox();
  await page.getByRole('button', { name: 'Go to the latest message' }).waitFor();
  await page.getByText(lastWord(120)).waitFor();
  expect(await top()).toBe(300);
  expect(await marked.boundingBox()).toEqual(place);
  expect(await page.inspect('scrolled-up')).toEqual([]);
  await page.getByRole('button', { name: 'Go to the latest message' }).click();
  const distance = (element: any): number =>
    element.scrollHeight - element.scrollTop - element.clientHeight;
  expect(await log.evaluate(distance)).toBeLessThan(2);
  await page.context().close();
});

withBrowser('keeps the elements of finished blocks while the next ones are written', async () => {
  const page = await chat!.visit();
  const pieces = ['First **block**.\n\n', ...Array.from({ length: 60 }, (_, at) => `word${at} `)];
  chat!.service.model.use({ text: pieces.join(''), pieces, piece_delay_ms: 30 });
  await page.ask('Write');
  await page.getByText('word1 ').waitFor();
  const first = await page.getByText('First block').elementHandle();
  const place = await first.boundingBox();
  await page.getByText(lastWord(60)).waitFor();
  // Nor does the end of the answer move anything.
  await page.getByRole('button', { name: 'Send' }).waitFor();
  expect(await first.boundingBox()).toEqual(place);
  expect(await first.evaluate((element: any) => element.isConnected as boolean)).toBe(true);
  await page.context().close();
});

withBrowser('resumes an answer after the connection is lost', async () => {
  const page = await chat!.visit();
  chat!.service.model.use(slowly(150));
  await page.ask('Count');
  await page.getByText('word3 ').waitFor();
  // Once as a network does that comes back at once, and once as one that is away for a while.
  chat!.cutConnections();
  await page.getByText('word20 ').waitFor();
  await page.context().setOffline(true);
  chat!.cutConnections();
  await page.getByText('Reconnecting').waitFor();
  expect(await page.inspect('reconnecting')).toEqual([]);
  await page.context().setOffline(false);
  await page.getByText(lastWord(150)).waitFor();
  const text = await page.locator('.markdown').innerText();
  expect(text.trim().split(/\s+/)).toEqual(Array.from({ length: 150 }, (_, at) => `word${at}`));
  expect(await page.getByText('Count', { exact: true }).count()).toBe(1);
  await page.context().close();
});

withBrowser('says what to try when an answer fails, and tries again', async () => {
  const page = await chat!.visit();
  chat!.service.model.use({ status: 400, body: { error: { message: 'internal detail' } } });
  await page.ask('Fail');
  await page.getByText('The answer failed. Try again, or').first().waitFor();
  expect(await page.getByText('internal detail').count()).toBe(0);
  expect(await page.inspect('failed')).toEqual([]);
  chat!.service.model.use(HELLO);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText(HELLO.text).waitFor();
  expect(await page.getByText('Fail', { exact: true }).count()).toBe(1);
  await page.context().close();
});

withBrowser('says what to try when the host issues no token', async () => {
  const page = await chat!.visit();
  await page.ask('Hi');
  await page.getByText(HELLO.text).waitFor();
  await chat!.stopHost();
  await chat!.startHost({ agent: 'agent_01kahz0b2re5v8k2s4n6t8w0y2' });
  await page.reload();
  await page.getByText('The chat could not be opened.').waitFor();
  await chat!.startHost({ agent: chat!.agent });
  await page.reload();
  await page.getByText(HELLO.text).waitFor();
  await page.context().close();
});

withBrowser('is shown only for an agent whose component names it', async () => {
  const other = await chat!.service.createAgent({ component: 'support-form' });
  await chat!.startHost({ agent: other });
  const page = await chat!.visit();
  await page.getByText('The agent names the component support-form').waitFor();
  const unnamed = await chat!.service.createAgent();
  await chat!.startHost({ agent: unnamed });
  await page.reload();
  await page.ask('Hi');
  await page.getByText(HELLO.text).waitFor();
  await chat!.startHost({ agent: chat!.agent });
  await page.context().close();
});

withBrowser('is one file of at most 60 kB compressed', async () => {
  const bytes = gzipSync(await readFile(chat!.script)).length;
  expect(bytes).toBeLessThanOrEqual(MAX_GZIP_BYTES);
  const served = await fetch(`${chat!.service.url}/console/turnlog-chat.js`);
  expect(served.headers.get('access-control-allow-origin')).toBe('*');
  expect((await served.text()).includes('import(')).toBe(false);
});
