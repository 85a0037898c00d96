/** Servers that lie, hang and die. */
import { spawn } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createToolbox } from '../../../infra/tools/toolbox.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  closeGroups,
  hostileServer,
  openGroup,
  serverWith,
  thread,
  until,
} from '../../support/fakes/mcpGroups.ts';

/** A process that opens a group whose server has children. */
const OPENS_GROUP = fileURLToPath(
  new URL('../../support/processes/opensMcpGroup.ts', import.meta.url),
);
const calling = { account_id: 'a', signal: new AbortController().signal };
let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-'));
  file = join(folder, 'notes');
});
afterEach(async () => {
  jest.restoreAllMocks();
  await closeGroups();
  await rm(folder, { recursive: true });
}, 20_000);

/** One that has ended is none, whether anybody has asked yet how it ended or not. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

async function opened(mode: string, more = {}) {
  const group = openGroup(serverWith(hostileServer(mode, file), more));
  await until(() => group.tools() !== undefined, 20_000);
  const tools = await group.known();
  const act = (what: string) => group.call('act', JSON.stringify({ what }), calling);
  return { group, tools, act };
}

describe('a server that', () => {
  test('dies during a call is told of, begun again, and the call is not made again', async () => {
    const { group, act } = await opened('plain');
    expect(await act('die')).toEqual({
      result: expect.stringContaining('went away during the call'),
      is_error: true,
    });
    await until(() => group.health().state === 'away');
    expect(await act('')).toEqual({
      result: 'The server files is away at the moment.',
      is_error: true,
    });
    await until(() => group.health().state === 'up');
    expect(await act('')).toEqual({ result: 'called act', is_error: false });
    expect(await readFile(file, 'utf8')).toBe('called\ncalled\n');
  });

  test('does not answer is not waited for, and is told', async () => {
    const { act } = await opened('plain', { callMs: 2_000 });
    expect(await act('hang')).toEqual({
      result: expect.stringContaining('did not answer within 2 s'),
      is_error: true,
    });
    await until(() => true);
    expect((await act('')).is_error).toBe(false);
    expect(await readFile(file, 'utf8')).toContain('cancelled');
  });

  test('answers too much has its answer cut, and is left where it does not end', async () => {
    const { group, act } = await opened('plain');
    const toolbox = createToolbox([], [group]);
    const wanted = { name: 'files__act', arguments: '{"what":"huge"}', account_id: 'a' };
    const { result, is_error } = await toolbox.call('mcp:files', wanted, calling.signal);
    expect([Buffer.byteLength(result), is_error]).toEqual([65_536, false]);
    expect((await act('flood')).is_error).toBe(true);
    await until(() => group.health().state === 'up' && group.tools() !== undefined);
  });

  test.each([
    ['garbage', 'after the garbage', false],
    ['refuse', 'The server refuses the call: not today', true],
    ['odd', expect.stringMatching(/not valid|went away/), true],
    ['fail', 'it failed', true],
    [
      'parts',
      'one\n[image, image/png, 3 bytes]\ntwo\n[resource file:///b, 3 bytes]\n[resource file:///c]',
      false,
    ],
    ['structure', '{"a":1}', false],
  ])('answers with %s is understood as far as that goes', async (what, result, is_error) => {
    const { act } = await opened('plain');
    expect(await act(what)).toEqual({ result, is_error });
    expect((await act('')).is_error).toBe(false);
  });

  test('can’t be started is away, with what it said in the log only', async () => {
    const group = openGroup(serverWith(hostileServer('never-starts')));
    await until(() => group.health().state === 'away');
    expect(JSON.stringify(group.health())).not.toContain('database');
    const missing = openGroup(
      serverWith({ kind: 'process', command: '/no/such', args: [], env: {}, cwd: undefined }),
    );
    await until(() => missing.health().state === 'away');
    expect(missing.health().reason).toContain('ENOENT');
    await expect(missing.known()).rejects.toMatchObject({ code: 'tool_error', retriable: true });
  }, 20_000);

  test.each([
    ['floods-changes', 'it sends too many messages'],
    ['floods-logs', 'it sends too many bytes'],
    ['floods-garbage', 'it sends too much that is not a message'],
  ])('%s is disconnected, and health and log say why', async (mode, reason) => {
    const lines: unknown[] = [];
    const group = openGroup(serverWith(hostileServer(mode)), (line) => lines.push(line));
    await until(() => group.health().state === 'away');
    expect(group.health()).toMatchObject({ name: 'files', reason });
    expect(lines).toContainEqual(expect.objectContaining({ server: 'files', reason }));
  });

  test('sends results without a request costs little, and its calls work', async () => {
    const { group, act } = await opened('unsolicited');
    const usage = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const { user, system } = process.cpuUsage(usage);
    expect((user + system) / 1_000).toBeLessThan(700);
    expect(await act('')).toEqual({ result: 'called act', is_error: false });
    expect(group.health().state).toBe('up');
  }, 30_000);

  test('writes many log messages is served, and they are not read', async () => {
    const { group, act } = await opened('plain');
    expect(await act('logs')).toEqual({ result: 'after the logs', is_error: false });
    expect(group.health().state).toBe('up');
  });

  test('changes large schemas again and again is listed with pauses', async () => {
    const group = openGroup(serverWith(hostileServer('changing', file)));
    await until(() => (group.tools()?.length ?? 0) > 0, 20_000);
    const count = (what: string) => readFileSync(file, 'utf8').split(what).length - 1;
    await until(() => count('changed') >= 2, 20_000);
    expect(count('listed')).toBe(1);
  }, 40_000);

  test('ends with this process, even when that is killed', async () => {
    const service = spawn(process.execPath, [OPENS_GROUP, file], { stdio: 'ignore' });
    await until(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), 30_000);
    const pids = (await readFile(file, 'utf8')).trim().split(' ').map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    service.kill('SIGKILL');
    await until(() => !pids.some(isAlive));
  }, 60_000);

  test('has its thread terminated is away, and so are the others; all of them come back', async () => {
    const { group } = await opened('has-children');
    const other = await opened('plain');
    const pids = (await readFile(file, 'utf8')).split('\n')[0]!.split(' ').map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    const place = thread.connect(serverWith(hostileServer('plain')), '1');
    place.terminate();
    await until(() => group.health().reason === 'its thread does not respond');
    expect((await other.act('')).is_error).toBe(true);
    await until(() => !pids.some(isAlive));
    place.release();
    await until(() => [group, other.group].every((each) => each.health().state === 'up'));
    expect((await other.act('')).is_error).toBe(false);
  }, 30_000);

  test('leaves children behind is ended with them', async () => {
    const { group } = await opened('has-children');
    const pids = (await readFile(file, 'utf8')).trim().split(' ').map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    await group.close();
    await until(() => !pids.some(isAlive));
  });

  test('is killed leaves none of its children behind either', async () => {
    await opened('has-children');
    const [parent, child] = (await readFile(file, 'utf8')).trim().split(' ').map(Number);
    process.kill(parent!, 'SIGKILL');
    await until(() => !isAlive(child!));
  });

  test('is given nothing of our environment but what was named', async () => {
    process.env['SECRET_OF_OURS'] = 'hidden';
    const { act } = await opened('plain');
    const { result } = await act('environment');
    delete process.env['SECRET_OF_OURS'];
    expect(Object.keys(JSON.parse(result)).filter((name) => !name.startsWith('__'))).toEqual([
      'PATH',
    ]);
  });

  test('says that its tools have changed has them listed again', async () => {
    const { group, tools, act } = await opened('changes');
    expect(tools.map(({ name }) => name)).toEqual(['act']);
    await act('');
    await until(() => group.tools()?.length === 2);
    expect(await group.call('later', '{}', calling)).toEqual({
      result: 'called later',
      is_error: false,
    });
  });

  test('lists without end is away', async () => {
    const group = openGroup(serverWith(hostileServer('endless-pages')));
    await until(() => group.health().state === 'away');
    expect(group.tools()).toBeUndefined();
  });

  test('has too many tools has the first ones offered', async () => {
    const { tools } = await opened('many');
    // The server has 300. A machine with other things to do may not get to read all of the first.
    expect(tools.length).toBeGreaterThan(0);
    expect(tools.every(({ name }) => Number(name.slice(1)) < 128)).toBe(true);
  });

  test('has more tools than are wanted has only those offered', async () => {
    const { tools } = await opened('many', { tools: ['t7', 't200', 'missing'] });
    expect(tools.map(({ name }) => name)).toEqual(['t7', 't200']);
  });
});

test('schemas that would harm are refused, and others do not: no check takes long', async () => {
  const { group, tools } = await opened('hostile-schemas');
  expect(tools.map(({ name }) => name)).toEqual(['fine', 'draft7', 'slow', 'branching', 'proto']);
  const longest = async (tool: string, args: unknown) => {
    const began = performance.now();
    const result = await group.call(tool, JSON.stringify(args), calling);
    expect(performance.now() - began).toBeLessThan(10_000);
    return result;
  };
  expect(await longest('slow', { a: `${'a'.repeat(50)}b` })).toEqual({
    result: expect.stringContaining('they take too long to be checked'),
    is_error: true,
  });
  expect(await longest('slow', { a: 'aaa' })).toEqual({ result: 'called slow', is_error: false });
  let nested: Record<string, unknown> = {};
  for (let depth = 0; depth < 30; depth += 1) nested = { n: nested };
  expect((await longest('branching', { a: nested })).is_error).toBe(true);
  expect((await longest('draft7', { a: ['x'] })).result).toContain('a/0 must be number');
  expect((await longest('fine', [])).result).toContain('they must be a JSON object');
  expect((await longest('fine', { a: 1 })).result).toContain('a must be string');
});

describe('a server over HTTP that', () => {
  async function serve(listener: RequestListener) {
    const server = createServer(listener);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    const group = openGroup(serverWith({ kind: 'http', url, headers: { 'x-key': 'secret' } }));
    return { server, group };
  }

  test.each([
    [
      'answers without end',
      (response: { write(text: string): boolean }) => {
        const timer = setInterval(() => response.write('x'.repeat(1_000_000)), 1);
        timer.unref();
        setTimeout(() => clearInterval(timer), 5_000).unref();
      },
    ],
    ['answers with HTML', (response: { end(text: string): unknown }) => response.end('<html>')],
  ])('%s is away', async (_what, answer) => {
    const { server, group } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.on('error', () => undefined);
      answer(response);
    });
    await until(() => group.health().state === 'away');
    expect(JSON.stringify(group.health())).not.toContain('secret');
    server.close();
    server.closeAllConnections();
  });

  test('forgets its session is called anew, before it is listed again', async () => {
    jest.replaceProperty(LIMITS.mcp, 'listPauseMs', 600_000 as never);
    let session = 0;
    let forgotten = false;
    let answerLate: (() => void) | undefined;
    const { server, group } = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => {
        const { id, method, params } = JSON.parse(body || '{}');
        if (method === 'initialize') {
          session += 1;
          forgotten = false;
        } else if (request.method !== 'POST') return response.writeHead(405).end();
        else if (forgotten) return response.writeHead(404).end();
        if (id === undefined) return response.writeHead(202).end();
        const results: Record<string, object> = {
          initialize: {
            protocolVersion: params?.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: 'forgetful', version: '1' },
          },
          'tools/list': { tools: [{ name: 'act', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: `in session ${session}` }] },
        };
        const answer = (): void => {
          response.writeHead(200, {
            'content-type': 'application/json',
            'mcp-session-id': String(session),
          });
          response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
        };
        if (params?.arguments?.late === true) answerLate = answer;
        else answer();
        return undefined;
      });
    });
    await group.known();
    expect((await group.call('act', '{}', calling)).result).toBe('in session 1');
    const late = group.call('act', '{"late":true}', calling);
    await until(() => answerLate !== undefined);
    forgotten = true;
    expect(await group.call('act', '{}', calling)).toEqual({
      result:
        'The server has forgotten the session and did not make the call. Try again in a few seconds.',
      is_error: true,
    });
    await until(() => group.health().state === 'away');
    expect(group.health()).toMatchObject({ name: 'files', reason: 'it has forgotten the session' });
    await until(() => session === 2 && group.health().state === 'up');
    expect((await group.call('act', '{}', calling)).result).toBe('in session 2');
    // A call that the server still works on keeps its outcome, and does not delay the new session.
    answerLate!();
    expect((await late).result).toBe('in session 1');
    await closeGroups();
    server.close();
    server.closeAllConnections();
  });

  test('floods its event stream is disconnected, and health says why', async () => {
    const { server, group } = await serve((request, response) => {
      response.on('error', () => undefined);
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const notice = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
        const events = `data: ${JSON.stringify(notice)}\n\n`.repeat(1_000);
        const timer = setInterval(() => response.write(events), 5);
        response.on('close', () => clearInterval(timer));
        return;
      }
      let body = '';
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => {
        const { id, method, params } = JSON.parse(body || '{}');
        if (id === undefined) return response.writeHead(202).end();
        const results: Record<string, object> = {
          initialize: {
            protocolVersion: params?.protocolVersion,
            capabilities: { tools: { listChanged: true } },
            serverInfo: { name: 'flooding', version: '1' },
          },
          'tools/list': { tools: [{ name: 'act', inputSchema: { type: 'object' } }] },
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
      });
    });
    await until(() => group.health().reason === 'it sends too many messages');
    expect(group.health().state).toBe('away');
    await closeGroups();
    server.close();
    server.closeAllConnections();
  });

  test('begins messages of many lines and never ends them leaves the thread to others', async () => {
    const lines = 'data:a\n'.repeat(500_000);
    const { server, group } = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => {
        if (request.method !== 'POST') return response.writeHead(405).end();
        const { id, method, params } = JSON.parse(body);
        if (method === 'tools/call') {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          return response.write(lines);
        }
        if (id === undefined) return response.writeHead(202).end();
        const result =
          method === 'initialize'
            ? {
                protocolVersion: params.protocolVersion,
                capabilities: { tools: {} },
                serverInfo: { name: 'x', version: '1' },
              }
            : { tools: [{ name: 'act', inputSchema: { type: 'object' } }] };
        response.writeHead(200, { 'content-type': 'application/json' });
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      });
    });
    const other = openGroup(serverWith(hostileServer('plain'), { name: 'other' }));
    await until(() => group.tools() !== undefined && other.tools() !== undefined, 20_000);
    const stopping = new AbortController();
    const call = { ...calling, signal: stopping.signal };
    const calls = [1, 2, 3, 4].map(() => group.call('act', '{}', call).catch(() => 'stopped'));
    const connected = other.health();
    // The thread would end within a second.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(await other.call('act', '{"what":""}', calling)).toEqual({
      result: 'called act',
      is_error: false,
    });
    expect([connected.state, other.health().state, group.health().state]).toEqual([
      'up',
      'up',
      'up',
    ]);
    stopping.abort();
    await Promise.all(calls);
    server.close();
    server.closeAllConnections();
  }, 40_000);

  test('redirects is not sent our headers elsewhere', async () => {
    const seen: unknown[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers['x-key']);
      response.end();
    });
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { server, group } = await serve((_request, response) =>
      response
        .writeHead(307, { location: `http://127.0.0.1:${(other.address() as AddressInfo).port}/` })
        .end(),
    );
    await until(() => group.health().state === 'away');
    expect(seen).toEqual([]);
    server.close();
    other.close();
  });
});
