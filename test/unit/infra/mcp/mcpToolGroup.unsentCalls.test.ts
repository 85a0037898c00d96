import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  closeGroups,
  hostileServer,
  openGroup,
  serverWith,
  until,
} from '../../../support/fakes/mcpGroups.ts';
import { startForgetfulServer } from '../../../support/servers/forgetfulMcpServer.ts';

const calling = { account_id: 'a', signal: new AbortController().signal };
const numbered = (count: number) => Array.from({ length: count }, (_, nth) => nth);
const NOT_MADE = /has forgotten the session and did not make the call|is away at the moment/;

afterEach(async () => {
  jest.restoreAllMocks();
  await closeGroups();
});

async function openForgetful() {
  const server = await startForgetfulServer();
  const group = openGroup(serverWith(server.transport));
  await until(() => group.health().state === 'up');
  const call = async (nth: number) =>
    (await group.call('act', JSON.stringify({ nth }), calling)).result;
  return { server, group, call };
}

test('concurrent calls of a forgotten session, sent or not, are known not to be made', async () => {
  const { server, group, call } = await openForgetful();
  const calls = numbered(12).map(call);
  await until(() => server.calls().length === LIMITS.mcp.callsOfAccount);
  for (const nth of server.calls()) server.forget(nth);
  for (const result of await Promise.all(calls)) expect(result).toMatch(NOT_MADE);
  expect(server.calls()).toHaveLength(LIMITS.mcp.callsOfAccount);
  await until(() => group.health().reason === 'it has forgotten the session');
  server.close();
});

test('a listing whose session is forgotten leaves the calls in flight, and a new session begins', async () => {
  // The threads start with another server: the pause after a listing is ten times as long as it took.
  const other = openGroup(serverWith(hostileServer('plain'), { name: 'other' }));
  await until(() => other.health().state === 'up');
  jest.replaceProperty(LIMITS.mcp, 'listPauseMs', 0 as never);
  jest.replaceProperty(LIMITS.mcp, 'refreshMs', 10 as never);
  const { server, group, call } = await openForgetful();
  const result = call(1);
  await until(() => server.calls().length === 1);
  server.forgetListings();
  await until(() => server.refusedListings() === 1, 40_000);
  await until(() => group.health().state === 'away');
  await until(() => group.health().state === 'up');
  const later = call(2);
  await until(() => server.calls().length === 2);
  server.answer(2);
  expect(await later).toBe('answer 2');
  server.answer(1);
  expect(await result).toBe('answer 1');
  server.close();
}, 60_000);

test('a call that waits while its server goes away is known not to be made', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-'));
  const file = join(folder, 'calls');
  const group = openGroup(serverWith(hostileServer('plain', file)));
  await until(() => group.health().state === 'up');
  const call = async (what: string) =>
    (await group.call('act', JSON.stringify({ what }), calling)).result;
  const hanging = numbered(LIMITS.mcp.callsOfAccount - 1).map(() => call('hang'));
  await until(
    () => existsSync(file) && readFileSync(file, 'utf8') === 'called\n'.repeat(hanging.length),
  );
  const [last, waiting] = [call('die'), call('')];
  for (const result of await Promise.all([...hanging, last]))
    expect(result).toContain('went away during the call');
  expect(await waiting).toBe('The server files is away at the moment.');
  await rm(folder, { recursive: true });
});
