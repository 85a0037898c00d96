/** `<turnlog-chat>` against texts that attack the page, other visitors, and tokens that end. */
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { startEmbeddedChat, type ChatPage } from '../support/browser/embed.ts';
import { XSS_HOST, XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';

const HELLO = { text: 'Hello. How can I help?' };

const chat = await startEmbeddedChat(HELLO);
afterAll(async () => {
  await chat?.[Symbol.asyncDispose]();
});
beforeEach(() => chat?.service.model.use(HELLO));
const withBrowser = chat ? test : test.skip;

/** The effects of the texts on the page: elements that no Markdown makes, and addresses of links. */
const findDamage = (
  page: ChatPage,
): Promise<{ ran: boolean; elements: string[]; links: string[] }> =>
  page.locator('turnlog-chat').evaluate((host: any) => {
    const log = host.shadowRoot.querySelector('.log');
    const harmless = new Set(
      'OL LI SPAN DIV P BR A B STRONG I EM DEL S CODE PRE BLOCKQUOTE UL H1 H2 H3 H4 H5 H6 HR TABLE THEAD TBODY TR TH TD DETAILS SUMMARY DL DT DD BUTTON'.split(
        ' ',
      ),
    );
    const all: any[] = [...log.querySelectorAll('*')];
    const attributes = new Set(
      'class part id role tabindex href target rel start aria-busy aria-label aria-hidden type open'.split(
        ' ',
      ),
    );
    const isHarmful = (element: any): boolean =>
      !harmless.has(element.tagName) ||
      element.getAttributeNames().some((name: string) => !attributes.has(name));
    return {
      ran: (globalThis as any).__xss !== undefined,
      elements: all.filter(isHarmful).map((element) => element.outerHTML as string),
      links: all
        .filter(({ tagName }) => tagName === 'A')
        .map(({ href, target, rel }) => [href, target, rel].join(' '))
        .filter(
          (link) => !/^(?:|(?:https?|mailto):\S+) _blank noopener noreferrer nofollow$/.test(link),
        ),
    };
  });

const NO_DAMAGE = { ran: false, elements: [], links: [] };

withBrowser('shows texts of visitors, agents and tools without running them', async () => {
  const page = await chat!.visit();
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).hostname.endsWith(XSS_HOST)) elsewhere.push(request.url());
  });
  page.on('dialog', (dialog) => elsewhere.push(dialog.message()));
  const inputs = page.locator('.user > p');
  for (const [at, payload] of XSS_PAYLOADS.entries()) {
    const marked = `${payload}\n\nThe end of ${at}.`;
    chat!.service.model.use(({ messages }) =>
      messages.at(-1)!.role === 'user'
        ? {
            tool_calls: [
              { name: 'calculator', arguments: JSON.stringify({ expression: payload }) },
            ],
          }
        : { text: marked, pieces: Array.from(marked) },
    );
    await page.ask(payload);
    await page.locator('.agent').nth(at).getByText(`The end of ${at}.`).last().waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(await inputs.nth(at).textContent()).toBe(payload.trim());
    expect(await findDamage(page)).toEqual(NO_DAMAGE);
  }
  await page.locator('summary').first().click();
  expect(await page.inspect('payloads')).toEqual([]);
  await page.reload();
  await inputs.nth(XSS_PAYLOADS.length - 1).waitFor();
  expect(await findDamage(page)).toEqual(NO_DAMAGE);
  expect(elsewhere).toEqual([]);
  expect(page.problems).toEqual([]);
  await page.context().close();
});

withBrowser('shows Markdown that would exceed the stack, or take minutes', async () => {
  const page = await chat!.visit();
  const texts = ['>'.repeat(20_000), '- '.repeat(5_000), '*a_'.repeat(30_000)];
  for (const [at, text] of texts.entries()) {
    chat!.service.model.use({ text: `${text}x\n\n**The end of ${at}.**` });
    await page.ask('Hi');
    await page.locator('.agent strong').getByText(`The end of ${at}.`).waitFor();
  }
  await page.reload();
  await page.locator('.agent strong').getByText('The end of 2.').waitFor();
  expect(await page.locator('.agent strong').count()).toBe(3);
  expect(page.problems).toEqual([]);
  await page.context().close();
});

withBrowser('indents no JSON whose indentation would fill the memory', async () => {
  const page = await chat!.visit();
  const nested = (levels: number): string => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
  const calls = [nested(3_000), nested(2)].map((text) => ({
    name: 'calculator',
    arguments: `{"expression":${text}}`,
  }));
  chat!.service.model.use(({ messages }) =>
    messages.at(-1)!.role === 'user' ? { tool_calls: calls } : HELLO,
  );
  await page.ask('Calculate');
  await page.getByText(HELLO.text).waitFor();
  const inputs = page.locator('.tool dt:has-text("Input") + dd');
  expect(await inputs.first().textContent()).toBe(calls[0]!.arguments);
  expect(await inputs.last().textContent()).toContain('"expression": [\n    [\n      1\n');
  await page.context().close();
});

withBrowser('does not show the session of another visitor', async () => {
  const victim = await chat!.visit();
  await victim.ask('My secret');
  await victim.getByText(HELLO.text).waitFor();
  const stored: [string, string][] = await victim.evaluate(() =>
    Object.entries((globalThis as any).sessionStorage),
  );
  expect(stored).toEqual([[expect.any(String), expect.stringMatching(/^session_/)]]);
  const [[name, session]] = stored as [[string, string]];

  const attacker = await chat!.visit();
  await attacker.evaluate(
    ([key, value]) => (globalThis as any).sessionStorage.setItem(key, value),
    [name, session],
  );
  await attacker.reload();
  await attacker.getByText('Write a message to begin.').waitFor();
  expect(await attacker.getByText('My secret').count()).toBe(0);
  // It begins another session.
  chat!.service.model.use(({ messages }) => ({ text: `It has ${messages.length} messages.` }));
  await attacker.ask('What did I say?');
  await attacker.getByText('It has 2 messages.').waitFor();
  const token = [...attacker.credentials][0]!;
  const read = await fetch(`${chat!.service.url}/v1/sessions/${session}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(read.status).toBe(404);
  await victim.reload();
  await victim.getByText('My secret').waitFor();
  await Promise.all([victim, attacker].map((page) => page.context().close()));
});

withBrowser('goes on with another token when one expires, also within an answer', async () => {
  await chat!.startHost({ agent: chat!.agent, tokenSeconds: 2 });
  const page = await chat!.visit();
  const words = Array.from({ length: 80 }, (_, at) => `word${at}`);
  const pieces = words.map((word) => `${word} `);
  chat!.service.model.use({ text: pieces.join(''), pieces, piece_delay_ms: 60 });
  await page.ask('Count');
  await page.getByText('word79').waitFor();
  const text = await page.locator('.markdown').innerText();
  expect(text.trim().split(/\s+/)).toEqual(words);
  expect(page.credentials.size).toBeGreaterThan(1);
  const before = page.credentials.size;
  await page.waitForTimeout(2_100);
  chat!.service.model.use(HELLO);
  await page.ask('And now?');
  await page.getByText(HELLO.text).waitFor();
  expect(page.credentials.size).toBeGreaterThan(before);
  expect(page.problems).toEqual([]);
  await chat!.startHost({ agent: chat!.agent });
  await page.context().close();
});

withBrowser('says what to try when the agent is deleted', async () => {
  const agent = await chat!.service.createAgent({ component: 'turnlog-chat' });
  await chat!.startHost({ agent });
  const page = await chat!.visit();
  await page.ask('Hi');
  await page.getByText(HELLO.text).waitFor();
  await chat!.service.send('DELETE', `/v1/agents/${agent}`, '');
  await page.ask('Are you there?');
  await page.getByText('The chat could not be opened. Reload the page').first().waitFor();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  await chat!.startHost({ agent: chat!.agent });
  await page.context().close();
});
