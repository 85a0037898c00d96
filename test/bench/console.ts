/**
 * The console's service levels, in Chromium on this machine: `node test/bench/console.ts [sessions]
 * [turns]`; 200,000 sessions and a session of 10,000 turns, unless told otherwise. Bars: the first
 * view ≤ 1 s from a cold cache; the scripts of all views ≤ 350 kB gzip; no long task over 100 ms
 * while the list is scrolled from end to end; the transcript opens within 1 s, at its end and at a
 * linked turn.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { root } from '../support/docs/projectFiles.ts';
import { addSessions } from './largeLog.ts';
import { startProcess } from './process.ts';
import { createAgent, KEY, prepareFolder, runAgent, send, startTurnlog } from './turnlog.ts';

const [SESSIONS, TURNS] = [Number(process.argv[2] ?? 200_000), Number(process.argv[3] ?? 10_000)];
const ROW_PX = 44;
/** A scroll of this many rows at once is that of a scrollbar that is dragged fast. */
const ROWS_AT_ONCE = 400;
const SCROLL_MS = 180_000;
const BUILD_SECONDS = 120;
const INDEX_SECONDS = 300;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--enable-precise-memory-info'],
});
const modelServer = await startProcess(['test/bench/processes/modelServer.ts'], { until: /http/ });
const folder = await prepareFolder(/http\S+/.exec(modelServer.line)![0]);
let turnlog = await startTurnlog(folder);
const { agent_id: agentId } = await send(turnlog.url, createAgent('narrow'));
// Real runs: their texts are encrypted, unlike those that are written into the log.
let longSession: string | undefined;
for (let turn = 0; turn < TURNS; turn += 1)
  longSession = (await send(turnlog.url, runAgent(agentId as string, longSession)))
    .session_id as string;
const read = (path: string) =>
  send(turnlog.url, { method: 'GET', path, headers: { 'x-api-key': KEY } });
const [{ metadata }] = await read(`/v1/sessions/${longSession!}/events?limit=1`);
await turnlog.stop();
await modelServer.stop();
const owner = { accountId: metadata.account_id as string, agentId: agentId as string };
await addSessions(join(folder, 'data'), owner, { count: SESSIONS, turns: 1 });
turnlog = await startTurnlog(folder);
/** The service builds the console while it runs. */
for (let waited = 0; waited < BUILD_SECONDS; waited += 1) {
  const response = await fetch(`${turnlog.url}/console/`);
  if ((await response.text()).includes('id="root"')) break;
  await sleep(1_000);
}
/** The sessions that were written into the log are indexed after the start, which takes the processor. */
for (let waited = 0; waited < INDEX_SECONDS; waited += 1) {
  const search = `${turnlog.url}/v1/sessions?q=word&limit=1`;
  const response = await fetch(search, { headers: { 'x-api-key': KEY } });
  if (!('index' in ((await response.json()) as object))) break;
  await sleep(1_000);
}

/** Opens a view with a cold cache, and says how long it took until `wait` was over. */
async function open(path: string, wait: (page: Page) => Promise<void>): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(`sessionStorage.setItem('turnlog.api-key', ${JSON.stringify(KEY)})`);
  const page = await context.newPage();
  await page.goto(`${turnlog.url}/console${path}`);
  await wait(page);
  const ms = await page.evaluate<number>('performance.now()');
  say(`${path.replace(longSession!, '…')}: ${Math.round(ms)} ms`);
  return page;
}

const closing = async (page: Page): Promise<void> => page.context().close();

await closing(await open('/agents', (page) => page.getByText('Bench').first().waitFor()));
for (const path of [`/sessions/${longSession!}`, `/sessions/${longSession!}?turn=${TURNS / 2}`]) {
  const turn = path.includes('turn') ? TURNS / 2 : TURNS;
  const article = (page: Page) => page.getByRole('article', { name: `Turn ${turn}`, exact: true });
  await closing(await open(path, (page) => article(page).waitFor()));
}

const page = await open('/sessions', (each) => each.locator('[data-index="0"] a').waitFor());
const clickedAt = performance.now();
await page.evaluate(`
  history.pushState({}, '', '/console/sessions/${longSession!}');
  dispatchEvent(new PopStateEvent('popstate'));
`);
await page.getByRole('article', { name: `Turn ${TURNS}`, exact: true }).waitFor();
say(`the session from the list: ${Math.round(performance.now() - clickedAt)} ms`);
await page.goBack();
await page.locator('[data-index="0"] a').waitFor();
await page.evaluate(`
  globalThis.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
    .observe({ type: 'longtask' });
  globalThis.list = document.querySelector('main ol').parentElement;
`);
const startedAt = performance.now();
let [rows, heapBytes] = [0, 0];
for (let top = 0; performance.now() - startedAt < SCROLL_MS;) {
  const state = await page.evaluate<{ top: number; atEnd: boolean; rows: number; heap: number }>(`
    new Promise((done) => {
      list.scrollTop = ${top};
      requestAnimationFrame(() => requestAnimationFrame(() => done({
        top: list.scrollTop,
        atEnd: list.scrollTop + list.clientHeight >= list.scrollHeight - 1,
        rows: list.querySelectorAll('[data-index]').length,
        heap: performance.memory.usedJSHeapSize,
      })));
    })
  `);
  rows = Math.max(rows, state.rows);
  heapBytes = Math.max(heapBytes, state.heap);
  if (state.atEnd && (await page.getByText('more below').count()) === 0) break;
  top = state.top + ROWS_AT_ONCE * ROW_PX;
}
const seconds = Math.round((performance.now() - startedAt) / 1_000);
const longTasks = await page.evaluate<number[]>('longTasks');
const longest = Math.round(Math.max(0, ...longTasks));
say(
  `${await page
    .getByText(/sessions$/)
    .first()
    .textContent()} scrolled in ${seconds} s`,
);
say(`tasks over 50 ms: ${longTasks.length}, the longest ${longest} ms`);
say(`rows in the document: at most ${rows}; heap: at most ${Math.round(heapBytes / 2 ** 20)} MiB`);
await page.evaluate('list.scrollTop = list.scrollHeight / 2');
await page.locator(`[data-index="${Math.round(SESSIONS / 2)}"] a`).waitFor();
say('a row in the middle is read again');

const assets = join(root, 'services/console/dist/assets');
const scripts = readdirSync(assets).filter((name) => name.endsWith('.js'));
const bytes = scripts.reduce(
  (sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length,
  0,
);
say(`scripts: ${Math.round(bytes / 1_000)} kB gzip`);

await browser.close();
await turnlog.stop();
rmSync(folder, { recursive: true });
