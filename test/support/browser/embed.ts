import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { root } from '../docs/projectFiles.ts';
import type { Script } from '../fakes/scriptedModel.ts';
import { startTestService, type TestService } from '../http/service.ts';
import { freePort } from '../processes/freePort.ts';
import { launchChromium, runAxe, SCREENSHOTS } from './console.ts';

const workspace = join(root, 'services/console');
const screenshots = join(SCREENSHOTS, 'embed');

/** A page with the component, as a visitor of the example host sees it. */
export interface ChatPage extends Page {
  /** Errors of the page, and violations of its content security policy. */
  problems: string[];
  /** The credentials that the page sent, without their scheme. */
  credentials: Set<string>;
  /** Writes a message and sends it with Enter. */
  ask(text: string): Promise<void>;
  /** Saves a screenshot, and returns what axe finds wrong. */
  inspect(name: string): Promise<string[]>;
}

interface VisitOptions {
  /** A visitor who came before. */
  context?: BrowserContext;
  theme?: 'light' | 'dark';
  isPhone?: boolean;
}

export interface EmbeddedChat extends AsyncDisposable {
  service: TestService;
  agent: string;
  browser: Browser;
  /** The file of the component. */
  script: string;
  /** Starts the example host for an agent, in place of the one before. */
  startHost(options: { agent: string; tokenSeconds?: number }): Promise<void>;
  stopHost(): Promise<void>;
  /** Cuts the connections of all visitors to the service. */
  cutConnections(): void;
  /** Opens the page as a new visitor. */
  visit(options?: VisitOptions): Promise<ChatPage>;
}

/** Builds the component alone into the folder of a console that a service serves. */
async function buildEmbedded(sources: string): Promise<void> {
  const output = join(sources, 'dist');
  await promisify(execFile)(
    process.execPath,
    [
      'node_modules/vite/bin/vite.js',
      'build',
      '--config',
      'vite.embed.config.ts',
      '--outDir',
      output,
    ],
    { cwd: workspace, timeout: 120_000 },
  );
  await writeFile(join(output, 'index.html'), '');
}

/** Passes connections on to a port of this machine, and can cut them all. */
async function startProxy(port: number) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    }
    void pipeline(client, upstream, client).catch(() => undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cutConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutConnections,
    [Symbol.dispose]() {
      server.close();
      cutConnections();
    },
  };
}

function watch(page: ChatPage): void {
  page.problems = [];
  page.credentials = new Set();
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('console', (message) => {
    const isRequest = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isRequest) page.problems.push(message.text());
  });
  page.on('request', (request) => {
    const headers = request.headers();
    for (const name of ['authorization', 'x-api-key'])
      if (headers[name] !== undefined) page.credentials.add(headers[name].replace(/^Bearer /, ''));
  });
}

/**
 * Starts a service that serves the component, the example host, and Chromium; undefined without
 * Chromium. The agent names the component.
 */
export async function startEmbeddedChat(script: Script): Promise<EmbeddedChat | undefined> {
  await using starting = new AsyncDisposableStack();
  const sources = await mkdtemp(join(tmpdir(), 'turnlog-embed-'));
  starting.defer(() => rm(sources, { recursive: true, force: true }));
  const browser = await launchChromium(() => buildEmbedded(sources));
  if (!browser) return undefined;
  starting.defer(() => browser.close());
  await mkdir(screenshots, { recursive: true });
  const port = await freePort();
  const site = `http://localhost:${port}`;
  const options = { CONSOLE: 'on', CORS_ORIGINS: site };
  const service = await startTestService(script, options, sources);
  starting.defer(() => service.close());
  const proxy = starting.use(await startProxy(Number(new URL(service.url).port)));
  const agent = await service.createAgent({ tool: 'calculator', component: 'turnlog-chat' });

  let host: ChildProcess | undefined;
  const stopHost = async (): Promise<void> => {
    if (!host) return;
    const ended = once(host, 'exit');
    host.kill();
    await ended;
    host = undefined;
  };
  starting.defer(stopHost);
  const startHost: EmbeddedChat['startHost'] = async ({ agent: id, tokenSeconds = 900 }) => {
    await stopHost();
    host = spawn(process.execPath, [join(root, 'examples/chat/server.ts')], {
      env: {
        TURNLOG_URL: proxy.url,
        TURNLOG_API_KEY: service.key,
        AGENT_ID: id,
        PORT: String(port),
        TOKEN_SECONDS: String(tokenSeconds),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(host.stdout!, 'data');
  };
  await startHost({ agent });

  const started = starting.move();
  return {
    service,
    agent,
    browser,
    script: join(sources, 'dist/turnlog-chat.js'),
    startHost,
    stopHost,
    cutConnections: proxy.cutConnections,
    async visit({ context, theme = 'light', isPhone = false } = {}) {
      const visitor =
        context ??
        (await browser.newContext({
          colorScheme: theme,
          viewport: isPhone ? { width: 390, height: 844 } : { width: 1_000, height: 800 },
        }));
      const page = (await visitor.newPage()) as ChatPage;
      watch(page);
      page.ask = async (text) => {
        await page.getByLabel('Message').fill(text);
        await page.keyboard.press('Enter');
      };
      page.inspect = async (name) => {
        await page.screenshot({ path: join(screenshots, `${name}.png`) });
        return runAxe(page);
      };
      await page.goto(site);
      return page;
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
