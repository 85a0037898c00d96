/** The reference server of the protocol, as it is published, over both transports. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { McpGroup } from '../../../infra/mcp/mcpToolGroup.ts';
import type { McpTransport } from '../../../infra/mcp/server.ts';
import { createToolbox } from '../../../infra/tools/toolbox.ts';
import { closeGroups, openGroup, processOf, serverWith } from '../../support/fakes/mcpGroups.ts';
import { freePort } from '../../support/processes/freePort.ts';

const SCRIPT = fileURLToPath(
  new URL(
    '../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
    import.meta.url,
  ),
);
const calling = { account_id: 'a', signal: new AbortController().signal };

async function startHttp(): Promise<{ transport: McpTransport; stop: () => void }> {
  const port = await freePort();
  const server = spawn(process.execPath, [SCRIPT, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(server.stderr, 'data');
  const url = `http://127.0.0.1:${port}/mcp`;
  return { transport: { kind: 'http', url, headers: {} }, stop: () => void server.kill('SIGKILL') };
}

describe.each(['stdio', 'streamable HTTP'])('server-everything over %s', (kind) => {
  let group: McpGroup;
  let stop = (): void => undefined;

  beforeAll(async () => {
    let transport = processOf(SCRIPT, 'stdio');
    if (kind !== 'stdio') ({ transport, stop } = await startHttp());
    group = openGroup(serverWith(transport, { name: 'everything' }));
    await group.known();
  }, 30_000);
  afterAll(async () => {
    await closeGroups();
    stop();
  }, 30_000);

  test('has its tools, as functions that a model may call', async () => {
    const names = (await group.known()).map((tool) => tool.name);
    expect(names).toEqual(expect.arrayContaining(['echo', 'get-sum', 'get-tiny-image']));
    const toolbox = createToolbox([], [group]);
    expect(toolbox.findUnsupported('mcp:everything')).toBeUndefined();
    expect(toolbox.findUnsupported('mcp:everything/echo,mcp:everything/get-sum')).toBeUndefined();
    expect(toolbox.findUnsupported('mcp:everything/nothing')).toBe('mcp:everything/nothing');
    const definitions = await toolbox.definitions('mcp:everything/echo');
    expect(definitions).toMatchObject([
      { type: 'function', function: { name: 'everything__echo', parameters: { type: 'object' } } },
    ]);
    const all = await toolbox.definitions('mcp:everything, mcp:everything/echo');
    expect(all).toHaveLength(names.length);
    for (const definition of all) expect(definition.function.name).toMatch(/^[\w-]{1,64}$/);
  });

  test('answers calls with text', async () => {
    expect(await group.call('echo', '{"message":"hello"}', calling)).toEqual({
      result: 'Echo: hello',
      is_error: false,
    });
    const sum = await group.call('get-sum', '{"a":2,"b":40}', calling);
    expect(sum).toEqual({ result: expect.stringContaining('42'), is_error: false });
  });

  test('has its arguments checked before the call', async () => {
    expect(await group.call('get-sum', '{"a":"two","b":40}', calling)).toEqual({
      result: expect.stringMatching(/^The arguments of everything__get-sum do not fit: a must be/),
      is_error: true,
    });
  });

  test('names what is no text', async () => {
    const { result } = await group.call('get-tiny-image', '{}', calling);
    expect(result).toMatch(/\[image, image\/png, \d+ bytes\]/);
  });

  test('has its calls cancelled with the run', async () => {
    const leaving = new AbortController();
    const reason = new Error('the run is over');
    const began = performance.now();
    const call = group.call('trigger-long-running-operation', '{"duration":20,"steps":4}', {
      account_id: 'a',
      signal: leaving.signal,
    });
    setTimeout(() => leaving.abort(reason), 200);
    await expect(call).rejects.toBe(reason);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await group.call('echo', '{"message":"still here"}', calling)).is_error).toBe(false);
  });

  test('makes calls side by side', async () => {
    const began = performance.now();
    const results = await Promise.all(
      Array.from({ length: 8 }, () =>
        group.call('trigger-long-running-operation', '{"duration":2,"steps":1}', calling),
      ),
    );
    expect(results.every(({ is_error }) => !is_error)).toBe(true);
    expect(performance.now() - began).toBeLessThan(12_000);
  });
});
