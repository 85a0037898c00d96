import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';

const script = new URL('../../../infra/deploy/healthCheck.ts', import.meta.url).pathname;
const closers: Array<() => void> = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

async function servicePort(answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function exitCode(port: number): Promise<number | null> {
  const check = spawn(process.execPath, [script], { env: { PORT: String(port) }, stdio: 'ignore' });
  const [code] = (await once(check, 'exit')) as [number | null];
  return code;
}

describe('the health check of the container', () => {
  test('passes when the process says that it lives', async () => {
    const port = await servicePort(
      (request, response) =>
        void response.writeHead(request.url === '/health/live' ? 200 : 404).end(),
    );
    await expect(exitCode(port)).resolves.toBe(0);
  });

  test('fails when the process answers anything else', async () => {
    await expect(
      exitCode(await servicePort((_, response) => void response.writeHead(503).end())),
    ).resolves.toBe(1);
  });

  test('fails when the process takes the connection and never answers', async () => {
    await expect(exitCode(await servicePort(() => undefined))).resolves.toBe(1);
  });

  test('fails when nothing listens', async () => {
    const port = await servicePort(() => undefined);
    closers.splice(0).forEach((close) => close());
    await expect(exitCode(port)).resolves.toBe(1);
  });
});
