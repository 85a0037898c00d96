import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { runsFeature } from '../../../../../services/api/runs/routes.ts';
import { MIB } from '../../../../../shared/lib/units.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

test.each(['', 'respond-async'])(
  'refuses a run before it starts while its account has no memory for the result (Prefer: %s)',
  async (prefer) => {
    const responseMemory = createResponseMemory(memoryFor('answers', 4 * MIB), 20);
    for (let held = 0; held < 2; held += 1) responseMemory.tryAcquire('acct_1', MIB);
    const started: string[] = [];
    const accountLimits = (account_id: string): never => {
      started.push(account_id);
      throw new Error('a run began');
    };
    const api = { responseMemory, accountLimits, runState: {} } as unknown as RouteContext;
    const get = (name: string): string => (name === 'prefer' ? prefer : '');
    const ctx = { get, res: { once: () => undefined } as unknown as ServerResponse };
    const run = (account_id: string) => {
      const actor = { account_id, key_id: 'key_1', request_id: 'r' };
      const request = {
        actor,
        params: { agentId: 'agent_1' },
        query: {},
        body: { input: 'Hi.' },
        acquireBuffer: () => Promise.resolve(),
      };
      const [route] = runsFeature.routes;
      return route.handle(api, request, ctx as unknown as Context);
    };
    await expect(run('acct_1')).rejects.toMatchObject({ code: 'rate_limited' });
    expect(started).toEqual([]);
    await expect(run('acct_2')).rejects.toThrow('a run began');
  },
);
