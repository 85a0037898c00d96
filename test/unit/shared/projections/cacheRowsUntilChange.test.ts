import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import { createProgressChannel } from '../../../../shared/projections/progress.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import { cacheRowsUntilChange } from '../../../../shared/projections/cacheRowsUntilChange.ts';

/** Read models with one agent, and what was asked of them. */
function withAgent() {
  const progress = createProgressChannel();
  const state = {
    name: 'A' as string | undefined,
    asked: 0,
    generation: 1,
    parameters: null as unknown,
    before: async () => {},
  };
  const find = async (id: string) => {
    state.asked += 1;
    const { name } = state;
    await state.before();
    const { parameters } = state;
    const texts = { name, instruction: 'x', parameters };
    return name === undefined ? undefined : { agent_id: id, key_id: id, ...texts };
  };
  const generation = (): number => state.generation;
  const inner = { findAgent: find, findApiKey: find, findApiKeyByHash: find, generation };
  const rows = cacheRowsUntilChange(inner as unknown as ReadModels & typeof inner, progress);
  const tell = (keepsKnownRows: boolean) =>
    progress.publish({
      position: undefined,
      caughtUp: true,
      percent: 100,
      generation: 1,
      keepsKnownRows,
    });
  return { state, rows, tell };
}

test('a row is read once, however many events of sessions come', async () => {
  const { state, rows, tell } = withAgent();
  await rows.findAgent('agent_1');
  tell(true);
  expect(await rows.findAgent('agent_1')).toMatchObject({ name: 'A' });
  expect(state.asked).toBe(1);
});

test.each(['findAgent', 'findApiKey', 'findApiKeyByHash'] as const)(
  '%s sees what any other event changed',
  async (query) => {
    const { state, rows, tell } = withAgent();
    await rows[query]('id_1');
    state.name = 'B';
    tell(false);
    expect(await rows[query]('id_1')).toMatchObject({ name: 'B' });
    state.name = undefined;
    tell(false);
    expect(await rows[query]('id_1')).toBeUndefined();
  },
);

test('rows with large parameters make room for later ones', async () => {
  const { state, rows } = withAgent();
  state.parameters = { description: 'x'.repeat(LIMITS.cache.rowChars / 4) };
  for (const id of ['1', '2', '3', '4', '1']) await rows.findAgent(id);
  expect(state.asked).toBe(5);
});

test('another generation is asked anew, whenever it takes the place of the one before', async () => {
  const { state, rows, tell } = withAgent();
  tell(false);
  await rows.findAgent('agent_1');
  // It was built meanwhile, and its last events were of sessions.
  tell(true);
  state.generation = 2;
  state.name = 'B';
  expect(await rows.findAgent('agent_1')).toMatchObject({ name: 'B' });
});

test('what is not there is asked for each time', async () => {
  const { state, rows } = withAgent();
  state.name = undefined;
  expect(await rows.findAgent('agent_1')).toBeUndefined();
  state.name = 'A';
  expect(await rows.findAgent('agent_1')).toMatchObject({ name: 'A' });
});

test('a row that changes while it is read is not remembered', async () => {
  const { state, rows, tell } = withAgent();
  state.before = async () => {
    state.name = 'B';
    tell(false);
  };
  expect(await rows.findAgent('agent_1')).toMatchObject({ name: 'A' });
  state.before = async () => {};
  expect(await rows.findAgent('agent_1')).toMatchObject({ name: 'B' });
});
