import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TEST_KEY } from '../support/http/service.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { size } from '../support/jest/size.ts';

const AGENTS = size({ small: 150, full: 560 });
const CLIENTS = size({ small: 150, full: 500 });
const MOST_MIB = 450;
const HEAP = { NODE_OPTIONS: '--max-old-space-size=256' };
/** A megabyte as JSON, since each has six characters there. */
const INSTRUCTION = '\u0001'.repeat(170_000);
const headers = { 'x-api-key': TEST_KEY, 'content-type': 'application/json' };

let folder: string;
let server: ServerProcess;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-large-'));
  server = startServerProcess({ ...HEAP, DATA_DIR: folder, BOOTSTRAP_API_KEY: TEST_KEY });
  url = await server.ready;
  for (let index = 0; index < AGENTS; index += 1) {
    const body = { name: `Agent ${index}`, instruction: INSTRUCTION, model: 'offline-echo' };
    const reply = await fetch(`${url}/v1/agents`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    expect(reply.status).toBe(200);
    await reply.text();
  }
}, 600_000);
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await rm(folder, { recursive: true, force: true });
});

const residentMib = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) / 1_024;

/** The most memory, and the longest wait for a sign of life, while the work goes on. */
async function watched(work: Promise<unknown>): Promise<{ mib: number; lateMs: number }> {
  const state = { isDone: false };
  const end = work.finally(() => (state.isDone = true));
  let [mib, lateMs] = [0, 0];
  while (!state.isDone) {
    const began = performance.now();
    await (await fetch(`${url}/health/live`)).text();
    lateMs = Math.max(lateMs, performance.now() - began);
    mib = Math.max(mib, residentMib());
    await setTimeout(20);
  }
  await end;
  return { mib, lateMs };
}

/** Reads the whole list, and tells its length and how it ends. */
async function readList(): Promise<{ bytes: number; agents: number; end: string }> {
  const reply = await fetch(`${url}/v1/agents`, { headers });
  let [bytes, agents, end] = [0, 0, ''];
  for await (const chunk of reply.body!) {
    bytes += chunk.length;
    const text = end + Buffer.from(chunk as Uint8Array).toString('latin1');
    agents += text.split('"config":').length - 1;
    end = text.slice(-8);
  }
  return { bytes, agents, end };
}

test('many clients read the longest list at once: it is complete, and memory does not grow with it', async () => {
  const one = await readList();
  expect(one).toMatchObject({
    agents: AGENTS,
    end: expect.stringMatching(/"status":200}$|:200}$/),
  });
  expect(one.bytes).toBeGreaterThan(AGENTS * 1_000_000);
  const reads = Promise.all(Array.from({ length: size({ small: 8, full: 64 }) }, readList));
  const { mib, lateMs } = await watched(reads);
  expect(new Set((await reads).map((read) => JSON.stringify(read)))).toEqual(
    new Set([JSON.stringify(one)]),
  );
  process.stdout.write(`large lists: ${Math.round(mib)} MiB, late by ${Math.round(lateMs)} ms\n`);
  expect(mib).toBeLessThan(MOST_MIB);
}, 600_000);

test('clients that never read are cut, hold little, and keep nobody waiting', async () => {
  const { port, hostname } = new URL(url);
  const request = `GET /v1/agents HTTP/1.1\r\nhost: x\r\nx-api-key: ${TEST_KEY}\r\n\r\n`;
  const sockets: Socket[] = [];
  for (let index = 0; index < CLIENTS; index += 1) {
    const socket = connect(Number(port), hostname, () => void socket.write(request));
    socket.on('error', () => undefined).pause();
    sockets.push(socket);
  }
  const { mib, lateMs } = await watched(setTimeout(size({ small: 15_000, full: 60_000 })));
  for (const socket of sockets) socket.destroy();
  process.stdout.write(`no readers: ${Math.round(mib)} MiB, late by ${Math.round(lateMs)} ms\n`);
  expect(mib).toBeLessThan(MOST_MIB);
  expect((await readList()).agents).toBe(AGENTS);
}, 600_000);
