/**
 * Erasures that would take away what sessions under their minimum retention need: the instruction of
 * their agent, the session that they were forked from, the session that they replay.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { setRetention } from '../../../shared/accounts/commands.ts';
import { asOperatorOn } from '../../support/processes/operator.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { openMachine } from '../../support/stores/forger/machine.ts';

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 10, 25, 12);
const MINIMUM_DAYS = 10;

let service: ForgedService;
let resources = new AsyncDisposableStack();
afterEach(async () => {
  await resources.disposeAsync();
  resources = new AsyncDisposableStack();
});

/** The only account is to keep its sessions for so many days. */
const keepFor = (minimum_days: number | null): Promise<void> =>
  asOperatorOn(service.env, async (operator) => {
    const [account] = await (await operator.readModels()).listAccounts();
    const { account_id } = account!;
    const actor = { account_id, key_id: 'operator', request_id: 'test' };
    await setRetention(operator, actor, { minimum_days });
  });

async function run(agent: string, session_id?: string): Promise<string> {
  const input = { input: 'hi', ...(session_id !== undefined && { session_id }) };
  return (await service.post(`/v1/agents/${agent}/run`, input)).body.data.session_id as string;
}

const refused = (words: RegExp) => ({
  status: 409,
  body: { code: 'erasure_refused', error: expect.stringMatching(words) as unknown },
});

describe.each(await forgedStores())('on $name', ({ open, start }) => {
  test('an agent is kept while a session under its minimum needs its instruction', async () => {
    service = resources.adopt(await start({ text: 'Done.' }), (one) => one.close());
    const agent = await service.createAgent();
    const unused = await service.createAgent();
    const session = await run(agent);
    await keepFor(183);
    const path = `/v1/agents/${agent}/erase`;
    expect(await service.post(path, {})).toMatchObject(
      refused(new RegExp(`the session ${session} of this agent until 20`)),
    );
    const requests = `/v1/sessions/${session}/turns/1/requests`;
    expect((await service.get(requests)).status).toBe(200);
    // What no session needs is erased, and so is everything once there is no minimum.
    expect((await service.post(`/v1/agents/${unused}/erase`, {})).status).toBe(200);
    await keepFor(null);
    expect((await service.post(path, {})).status).toBe(200);
    expect((await service.get(requests)).status).toBe(410);
  });

  test('a session is kept while a fork or replay of it, of any depth, is under its minimum', async () => {
    const stores = resources.adopt(await open(), (one) => one.close());
    const retention = { minimum_days: MINIMUM_DAYS };
    const machine = resources.adopt(
      await openMachine(stores.env, { retention, start: START }),
      (one) => one.close(),
    );
    const { world, begin } = machine;
    const forkOf = (session_id: string) => ({ forked_from: { session_id, turn: 1 } });
    const replayOf = (session_id: string) => ({
      replay: { replay_id: 'replay_1', session_id, role: 'replay' },
    });
    const [forked, replayed, free] = [await begin(), await begin(), await begin()];
    const fork = await begin(forkOf(forked));
    const replay = await begin(replayOf(replayed));
    world.time += MINIMUM_DAYS * DAY_MS;
    const forkOfFork = await begin(forkOf(fork));
    const forkOfReplay = await begin(forkOf(replay));
    await machine.erase(free);
    for (const [session_id, needed] of [
      [forked, forkOfFork],
      [fork, forkOfFork],
      [replayed, forkOfReplay],
      [replay, forkOfReplay],
    ] as const) {
      const error = new RegExp(`the session ${needed} .* until 2026-12-15T12:00`);
      await expect(machine.erase(session_id)).rejects.toMatchObject({
        code: 'erasure_refused',
        message: expect.stringMatching(error) as unknown,
      });
      expect(await machine.isErased(session_id)).toBe(false);
    }
    world.time += MINIMUM_DAYS * DAY_MS;
    for (const session_id of [forked, replayed]) await machine.erase(session_id);
    expect(await machine.isErased(replay)).toBe(true);
  });
});
