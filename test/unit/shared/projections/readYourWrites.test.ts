import { expect, test } from '@jest/globals';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import type { AgentRow } from '../../../../shared/readModels/tables.ts';
import { createProgressChannel } from '../../../../shared/projections/progress.ts';
import { readYourWrites } from '../../../../shared/projections/readYourWrites.ts';

const FIRST_PAGE = { limit: 10, bytes: 1_000 };
const at = (position: number): Position => String(position).padStart(4, '0') as Position;

/** Read models that show everything up to a position, and note how long they were waited for. */
function shownUpTo(first: number) {
  const state = {
    shown: at(first),
    waits: [] as number[],
    late: undefined as string | undefined,
    logged: [] as string[],
  };
  const inner = {
    untilShown: async (position: Position, timeoutMs: number) => {
      state.waits.push(timeoutMs);
      return position <= state.shown;
    },
    findSession: async () => undefined,
    findTranscript: async () => undefined,
    listSessions: async () => ({ rows: [], more: false }),
    indexProgress: async () => undefined,
    findAgent: async (agent_id: string) =>
      agent_id === 'agent_known' || (agent_id === 'agent_new' && state.shown >= at(7))
        ? { agent_id }
        : undefined,
    agentListVersion: async () => 'version',
    findApiKey: async () => undefined,
  } as unknown as ReadModels;
  const channel = createProgressChannel();
  const show = (position: number, heals?: boolean): void => {
    state.shown = at(position);
    const progress = { position: at(position), caughtUp: true, percent: 100, keepsKnownRows: true };
    channel.publish({ ...progress, generation: heals ? 2 : 1, ...(heals && { heals }) });
  };
  const readModels = readYourWrites(inner, {
    waitMs: 700,
    late: () => state.late,
    shown: () => state.shown,
    progress: channel,
    readNewAgent: async (agent_id) =>
      state.logged.includes(agent_id) ? ({ agent_id } as AgentRow) : undefined,
  });
  return { state, show, readModels };
}

test('queries wait for nothing while every write was shown before it was answered', async () => {
  const { state, readModels } = shownUpTo(5);
  expect(await readModels.untilShown(at(5), 100)).toBe(true);
  await readModels.findSession('session_1');
  expect(state.waits).toEqual([100]);
});

test('after a write that was answered late, queries are refused until it is shown', async () => {
  const { state, readModels } = shownUpTo(5);
  expect(await readModels.untilShown(at(7), 100)).toBe(false);
  expect(await readModels.untilShown(at(6), 100)).toBe(false);
  state.shown = at(6);
  await expect(readModels.findSession('session_1')).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
  // A key is not made by this process: it needs none of its writes.
  await readModels.findApiKey('key_1');
  state.shown = at(7);
  await readModels.findSession('session_1');
  state.waits = [];
  await readModels.findSession('session_1');
  expect(state.waits).toEqual([]);
});

test('a query waits as long as it may, and not at all where it is known why it would wait in vain', async () => {
  const { state, readModels } = shownUpTo(5);
  await readModels.untilShown(at(6), 100);
  state.waits = [];
  await expect(readModels.findSession('session_1')).rejects.toThrow('yet.');
  state.late = 'The database is locked.';
  await expect(readModels.findSession('session_1')).rejects.toThrow('The database is locked.');
  expect(state.waits).toEqual([700, 0]);
});

test('nor does a write', async () => {
  const { state, readModels } = shownUpTo(5);
  state.late = 'The log is another one.';
  expect(await readModels.untilShown(at(6), 100)).toBe(false);
  expect(state.waits).toEqual([0]);
});

const turnAt = (position: number, session_id = 'session_1') => ({
  position: at(position),
  account_id: 'acct_1',
  session_id,
});

test('the end of a turn is waited for by queries of its session and its account, and by no others', async () => {
  const { state, show, readModels } = shownUpTo(5);
  expect(readModels.showLater!(turnAt(7))).toBe(true);
  expect(readModels.showLater!(turnAt(6))).toBe(true);
  await readModels.findAgent('agent_1');
  await readModels.findSession('session_2');
  await readModels.listSessions('acct_2', FIRST_PAGE);
  await readModels.findTranscript('acct_1', 'session_2', FIRST_PAGE);
  expect(state.waits).toEqual([]);
  const queries = [
    () => readModels.findSession('session_1'),
    () => readModels.findTranscript('acct_1', 'session_1', FIRST_PAGE),
    () => readModels.listSessions('acct_1', FIRST_PAGE),
    () => readModels.indexProgress('acct_1'),
  ];
  for (const query of queries)
    await expect(query()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(state.waits).toEqual([700, 700, 700, 700]);
  show(7);
  for (const query of queries) await query();
  expect(state.waits).toHaveLength(4);
});

test('a new agent is waited for by lists of its account, and by a query that does not find it', async () => {
  const { state, show, readModels } = shownUpTo(5);
  const creation = { position: at(7), account_id: 'acct_1', agent_id: 'agent_new' };
  expect(readModels.showLater!(creation)).toBe(true);
  await readModels.findSession('session_1');
  expect(await readModels.findAgent('agent_known')).toMatchObject({ agent_id: 'agent_known' });
  expect(await readModels.findAgent('agent_unknown')).toBeUndefined();
  await readModels.agentListVersion('acct_2');
  expect(state.waits).toEqual([]);
  for (const query of [
    () => readModels.findAgent('agent_new'),
    () => readModels.agentListVersion('acct_1'),
  ])
    await expect(query()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(state.waits).toEqual([700, 700]);
  show(7);
  expect(await readModels.findAgent('agent_new')).toMatchObject({ agent_id: 'agent_new' });
  await readModels.agentListVersion('acct_1');
  expect(state.waits).toEqual([700, 700]);
});

test('a write that was shown is not waited for again where the log was restored', async () => {
  const { state, show, readModels } = shownUpTo(5);
  readModels.showLater!(turnAt(7));
  show(7);
  show(3, true);
  await readModels.findSession('session_1');
  expect(state.waits).toEqual([]);
});

test('a new agent that the log has is not waited for', async () => {
  const { state, readModels } = shownUpTo(5);
  readModels.showLater!({ position: at(7), account_id: 'acct_1', agent_id: 'agent_new' });
  state.logged = ['agent_new', 'agent_unknown'];
  expect(await readModels.findAgent('agent_new')).toEqual({ agent_id: 'agent_new' });
  expect(await readModels.findAgent('agent_unknown')).toBeUndefined();
  expect(state.waits).toEqual([]);
});

test('nothing is shown later where it is known that it will not be', () => {
  const { state, readModels } = shownUpTo(5);
  state.late = 'The log is another one.';
  expect(readModels.showLater!(turnAt(6))).toBe(false);
});
