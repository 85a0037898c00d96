import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { root } from '../docs/projectFiles.ts';
import type { TestService } from '../http/service.ts';
import { plainEnvironment } from '../processes/plainEnvironment.ts';
import { orSkip } from '../processes/recipes/installed.ts';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const CHROMIUMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** Where the screenshots are, one folder per test file. */
export const SCREENSHOTS = join(tmpdir(), 'turnlog-screenshots');

/** Services that a test starts after it has imported this file serve the console. */
process.env['TURNLOG_TEST_CONSOLE'] = 'on';

/** Installs and builds the console as it is in this checkout, unless it is built. */
const buildConsole = (): Promise<unknown> =>
  promisify(execFile)(process.execPath, [join(root, 'infra/vite/build.ts')], {
    env: plainEnvironment(),
    timeout: 300_000,
  });

/** A browser in which the console is used as a person would use it. */
export interface ConsoleBrowser {
  browser: Browser;
  /**
   * Opens a view in light, in dark and on a phone, saves screenshots, and returns what is wrong: the
   * findings of axe, the problems of the page, and a page that scrolls sideways.
   */
  inspectLooks(path: string, view: InspectedView): Promise<string[]>;
  /** A page of `service`, signed in with its key unless `key` says otherwise (null: not signed in). */
  open(path: string, options: OpenOptions): Promise<ConsolePage>;
  close(): Promise<void>;
}

interface InspectedView {
  service: OpenOptions['service'];
  /** The beginning of the names of the screenshots. */
  name: string;
  /** Resolves once the view shows its content. */
  wait: (page: ConsolePage) => Promise<void>;
}

const LOOKS = [
  { look: 'light' },
  { look: 'dark', theme: 'dark' },
  { look: 'phone', isPhone: true },
] as const;

interface OpenOptions {
  service: Pick<TestService, 'url' | 'key'>;
  key?: string | null;
  theme?: 'light' | 'dark';
  /** 390 × 844 instead of 1280 × 800. */
  isPhone?: boolean;
}

export interface ConsolePage extends Page {
  /**
   * The problems of the page: errors, violations of the content security policy, requests to
   * another host, and dialogs of the browser.
   */
  problems: string[];
  /**
   * Rejects requests whose address matches, with 400 and the code `rejected`, until `accept` is
   * called; `rejected` counts them.
   */
  rejectRequests(address: RegExp): Promise<{ rejected: () => number; accept: () => Promise<void> }>;
  /** Saves a screenshot, and returns what axe finds wrong (WCAG 2.2 A and AA). */
  inspect(name: string): Promise<string[]>;
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

interface AxeResults {
  violations: { id: string; help: string; nodes: { html: string }[] }[];
}

/** The violations that axe finds in a page (WCAG 2.2 A and AA). */
export async function runAxe(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)} })`,
  )) as AxeResults;
  return violations.map(({ id, help, nodes }) => `${id}: ${help} (${nodes[0]?.html})`);
}

/**
 * Starts Debian's Chromium over a fresh build; undefined, with one line that says why, where there is
 * none. Throws when the build fails.
 */
export async function launchChromium(build: () => Promise<unknown>): Promise<Browser | undefined> {
  const executablePath = await orSkip(async () => {
    const path = CHROMIUMS.find((each) => existsSync(each));
    if (path === undefined) throw new Error('there is no Chromium');
    return path;
  }, 'Browser tests need Chromium: apt-get install chromium.');
  if (executablePath === undefined) return undefined;
  await build();
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/** Starts Chromium over a fresh build of the console; undefined without Chromium. */
export async function startConsoleBrowser(folder: string): Promise<ConsoleBrowser | undefined> {
  const browser = await launchChromium(buildConsole);
  if (!browser) return undefined;
  const screenshots = join(SCREENSHOTS, folder);
  await mkdir(screenshots, { recursive: true });
  const consoleBrowser: ConsoleBrowser = {
    browser,
    async inspectLooks(path, { service, name, wait }) {
      const found: string[] = [];
      for (const { look, ...options } of LOOKS) {
        const page = await consoleBrowser.open(path, { service, ...options });
        await wait(page);
        await page.waitForLoadState('networkidle');
        found.push(...(await page.inspect(`${name}-${look}`)), ...page.problems);
        const beyond = await page.evaluate<number>(
          'document.documentElement.scrollWidth - innerWidth',
        );
        if (beyond > 0) found.push(`${look}: the page scrolls sideways by ${beyond} pixels`);
        await page.context().close();
      }
      return found;
    },
    async open(
      path,
      { service, key = service.key, theme = 'light', isPhone = false }: OpenOptions,
    ) {
      const options: BrowserContextOptions = {
        colorScheme: theme,
        viewport: isPhone ? { width: 390, height: 844 } : { width: 1280, height: 800 },
        permissions: ['clipboard-read', 'clipboard-write'],
      };
      const context = await browser.newContext(options);
      if (key !== null)
        await context.addInitScript(
          `sessionStorage.setItem('turnlog.api-key', ${JSON.stringify(key)})`,
        );
      const page = (await context.newPage()) as ConsolePage;
      page.problems = [];
      page.on('pageerror', (error) => page.problems.push(String(error)));
      page.on('console', (message) => {
        const isRequest = message.text().startsWith('Failed to load resource');
        if (message.type() === 'error' && !isRequest) page.problems.push(message.text());
      });
      page.on('request', (request) => {
        const { protocol, host } = new URL(request.url());
        const isOurs = host === new URL(service.url).host || ['data:', 'blob:'].includes(protocol);
        if (!isOurs) page.problems.push(`a request to ${request.url()}`);
      });
      page.on('dialog', (dialog) => {
        page.problems.push(`a dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.rejectRequests = async (address) => {
        let count = 0;
        const json = { error: 'Rejected by the test.', code: 'rejected', retry: 'never' };
        await page.route(address, (route) => {
          count += 1;
          return route.fulfill({ status: 400, json });
        });
        return { rejected: () => count, accept: () => page.unroute(address) };
      };
      page.inspect = async (name) => {
        await page.screenshot({ path: join(screenshots, `${name}.png`) });
        return runAxe(page);
      };
      await page.goto(`${service.url}/console${path}`);
      return page;
    },
    async close() {
      // A view that refreshes itself may be in the middle of a request that a test answers.
      const pages = browser.contexts().flatMap((context) => context.pages());
      await Promise.all(pages.map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
      await browser.close();
    },
  };
  return consoleBrowser;
}
