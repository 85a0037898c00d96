import { expect, test } from '@jest/globals';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { replaysFeature } from '../../../../../services/api/replays/routes.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const MOST = LIMITS.replays.pageTurns;

test.each([
  [undefined, MOST],
  [MOST - 1, MOST - 1],
  [MOST + 1, MOST],
])('of a page with the limit %p, %p turns are read', async (limit, turns) => {
  const replayId = 'replay_01kahz1c3sf6w9m3v5q7x9z1a3';
  const api = {
    store: { readStream: async () => [], keys: memoryKeys().keys },
    readModels: {
      findReplay: async () => ({ account_id: 'acct_1', replay_id: replayId, revision: 0 }),
      findReplaySettings: async () => ({ settings: {} }),
      listReplayTurns: async (_id: string, page: { limit: number }) => {
        throw new Error(`${page.limit} turns`);
      },
    },
  } as unknown as RouteContext;
  const { handle } = replaysFeature.routes.find(({ operationId }) => operationId === 'getReplay')!;
  const asked = { actor: { account_id: 'acct_1' }, params: { replayId }, query: { limit } };
  const ctx = { set: () => undefined };
  await expect(handle(api, asked as never, ctx as never)).rejects.toThrow(`${turns} turns`);
});
