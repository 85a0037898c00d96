/** Agents with the tools of MCP servers, over HTTP. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { HOSTILE } from '../../support/fakes/mcpGroups.ts';

let folder: string;
let service: TestService;

const call = (name: string, what: string, id = name) => ({
  id,
  name,
  arguments: JSON.stringify({ what }),
});

const clockCall = (id: string) => ({ id, name: 'clock', arguments: '{}' });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-service-'));
  const file = join(folder, 'tools.json');
  const command = process.execPath;
  await writeFile(
    file,
    JSON.stringify({
      builtin: ['clock'],
      mcp_servers: {
        files: {
          command,
          args: [HOSTILE, 'plain'],
          env: { GIVEN: 'yes' },
          env_from: { KEY: 'HOME' },
        },
        gone: { command, args: [HOSTILE, 'never-starts'] },
        partly: { command, args: [HOSTILE, 'malformed'] },
        noted: { command, args: [HOSTILE, 'plain', join(folder, 'noted')] },
      },
    }),
  );
  service = await startTestService(
    ({ messages }, index) => {
      const { role, content } = messages.at(-1)!;
      if (role === 'tool') return { text: `done ${index}` };
      const tool_calls =
        content === 'hang'
          ? [call('noted__act', 'hang'), ...['c1', 'c2', 'c3'].map((id) => clockCall(id))]
          : ['', 'fail', 'environment'].map((what, n) => call('files__act', what, `c${n}`));
      return { tool_calls };
    },
    { TOOLS_FILE: file },
  );
  await eventually(
    () => service.get('/health/ready'),
    ({ body }) =>
      body.data.tool_servers?.every(({ state }: { state: string }) => state !== 'starting'),
  );
}, 30_000);
afterAll(async () => {
  await closeRebuilt(service);
  await rm(folder, { recursive: true });
}, 30_000);

test('the tools of a server are listed, and health tells of servers that are away', async () => {
  const { body } = await service.get('/v1/tools');
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual([
    'clock',
    'mcp:files',
    'mcp:files/act',
    'mcp:gone',
    'mcp:partly',
    'mcp:partly/act',
    'mcp:noted',
    'mcp:noted/act',
  ]);
  const ready = await service.get('/health/ready');
  expect([ready.status, ready.body.data.status]).toEqual([200, 'degraded']);
  expect(ready.body.data.tool_servers).toEqual([
    { name: 'files', state: 'up', tools: 1 },
    { name: 'gone', state: 'away', tools: 0, reason: expect.any(String) },
    {
      name: 'partly',
      state: 'up',
      tools: 1,
      problems: [
        '"bad" is not offered: its inputSchema is not valid',
        '"number 3" is not offered: its name is not valid',
        '"number 4" is not offered: it is not an object',
        '"described" is not offered: its description is not valid',
        '"odd" is not offered: its inputSchema is not valid',
      ],
    },
    { name: 'noted', state: 'up', tools: 1 },
  ]);
});

test('a run calls them, and records what was offered and what came of it', async () => {
  const agent_id = await service.createAgent({ tool: 'clock,mcp:files' });
  const { body, status } = await service.post(`/v1/agents/${agent_id}/run`, { input: 'go' });
  expect(status).toBe(200);
  expect(body.data.metadata.tool_used).toBe('files__act');
  const { session_id } = body.data;
  const transcript = await service.get(`/v1/sessions/${session_id}`);
  const [turn] = transcript.body.data.turns;
  expect(
    turn.tool_calls.map(({ call_id, result, is_error }: Record<string, unknown>) => [
      call_id,
      is_error,
      (result as string).slice(0, 9),
    ]),
  ).toEqual([
    ['c0', false, 'called ac'],
    ['c1', true, 'it failed'],
    ['c2', false, expect.any(String)],
  ]);
  const environment = Object.keys(JSON.parse(turn.tool_calls[2].result));
  expect(environment).toEqual(expect.arrayContaining(['GIVEN', 'KEY', 'PATH']));
  expect(environment.filter((name) => /BOOTSTRAP|MODELS|TOOLS|JEST|npm_/i.test(name))).toEqual([]);
  const events = await service.get(`/v1/sessions/${session_id}/events`);
  const started = events.body.data.find(({ type }: { type: string }) =>
    type.startsWith('session.turn_started'),
  );
  const offered = started.data.settings.tools.map(
    (tool: { function: { name: string } }) => tool.function.name,
  );
  expect(offered).toEqual(['clock', 'files__act']);
});

test('calls that have ended are recorded before a cancellation, also after one that has not', async () => {
  const agent_id = await service.createAgent({ tool: 'clock,mcp:noted' });
  const started = await service.post(
    `/v1/agents/${agent_id}/run`,
    { input: 'hang' },
    { prefer: 'respond-async' },
  );
  const { session_id } = started.body.data;
  // The other calls end at once.
  await eventually(
    () => readFile(join(folder, 'noted'), 'utf8').catch(() => ''),
    (calls) => calls === 'called\n',
  );
  const cancelled = await service.post(`/v1/sessions/${session_id}/cancel`, '');
  expect(cancelled.body.data).toMatchObject({ status: 'interrupted', cancelled: true });
  const { body } = await service.get(`/v1/sessions/${session_id}/events`);
  expect(
    body.data.map(({ type, data }: { type: string; data: { call_id?: { text: string } } }) => [
      type,
      data.call_id?.text,
    ]),
  ).toEqual([
    ['session.started.v1', undefined],
    ['session.turn_started.v1', undefined],
    ...['c1', 'c2', 'c3'].map((id) => ['session.tool_called.v1', id]),
    ['session.turn_interrupted.v1', undefined],
  ]);
});

test.each([
  ['calculator', 'calculator'],
  ['mcp:files/none', 'mcp:files/none'],
  ['clock,', ''],
  ['clock,mcp:nobody', 'mcp:nobody'],
])('an agent can’t name %s', async (tool, unknown) => {
  const { status, body } = await service.post('/v1/agents', {
    name: 'a',
    instruction: 'b',
    model: 'scripted',
    tool,
  });
  expect([status, body.code]).toEqual([400, 'tool_not_supported']);
  expect(body.details!['tool']!.message).toContain(
    `The tool "${unknown}" is not supported. Supported: clock, mcp:files, mcp:files/act`,
  );
});

test('a run with a server of which nothing was ever heard is refused, and begins no turn', async () => {
  const agent_id = await service.createAgent({ tool: 'mcp:gone' });
  const { status, body } = await service.post(`/v1/agents/${agent_id}/run`, { input: 'go' });
  expect([status, body.code]).toEqual([502, 'tool_error']);
  const sessions = await service.get(`/v1/sessions?agent_id=${agent_id}`);
  expect(sessions.body.data).toEqual([]);
}, 20_000);
