import { describe, expect, test } from '@jest/globals';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { keyBeforeDay, type UsageKey, type UsageSum } from '../../shared/usage/sqlQueries.ts';
import { type UsageColumn } from '../../shared/usage/tables.ts';
import {
  accountErased,
  accountOpened,
  modelCall,
  sessionCompacted,
  sessionErased,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../support/builders/events.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03'];

/** What the read models add up of model calls: a part of the suite of their port. */
export function usageContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: usage`, () => {
    const fresh = freshReadModels(open);
    const { apply } = fresh;

    type Event = Parameters<typeof fresh.record>[1];
    interface Where {
      account?: string;
      key?: string;
      at?: string;
    }
    const record = (session: string, event: Event, where: Where = {}): StoredEvent =>
      fresh.record({ stream: `session-${session}`, ...where }, event);

    /** All slices, of so many rows each. */
    async function sums(
      account: string,
      {
        by = ['model'],
        from = DAYS[0]!,
        to = DAYS[2]!,
        limit = 2,
      }: { by?: UsageColumn[]; from?: string; to?: string; limit?: number } = {},
    ): Promise<UsageSum[]> {
      const found: UsageSum[] = [];
      let after: UsageKey | undefined = keyBeforeDay(from);
      while (after) {
        const slice = await fresh.readModels.sumUsage(account, { after, to, by, limit });
        found.push(...slice.sums.map((sum) => ({ ...sum })));
        after = slice.next;
      }
      return found;
    }

    const tokens = (prompt: number) => ({ prompt, completion: 1, total: prompt + 1 });
    const turn = (session: string, number: number, ending: Event, where: Where = {}) => [
      record(session, turnStarted(number), where),
      record(session, toolCalled(number), where),
      record(session, ending, where),
    ];

    test('adds up turns as they end, once however often they are delivered', async () => {
      const calls = [{ ...modelCall, tokens: tokens(10) }];
      const events = [
        record('session_1', sessionStarted('agent_1')),
        ...turn('session_1', 1, turnCompleted(1, { calls })),
        ...turn('session_1', 2, turnCompleted(2, { calls })),
      ];
      await apply(...events.slice(0, 5));
      const once = (await sums('acct_1'))[0]!;
      expect(once).toEqual({
        model: 'gpt-4o',
        completed: 1,
        failed: 0,
        interrupted: 0,
        prompt_tokens: 10,
        completion_tokens: 1,
        total_tokens: 11,
        model_calls: 1,
        tool_calls: 1,
      });
      await apply(...events.slice(2));
      await apply(...events);
      expect(await sums('acct_1')).toEqual([
        {
          ...once,
          completed: 2,
          prompt_tokens: 20,
          completion_tokens: 2,
          total_tokens: 22,
          model_calls: 2,
          tool_calls: 2,
        },
      ]);
      expect(await sums('acct_2')).toEqual([]);
    });

    test('knows agent, key, day, kind and code of a turn, and the model that answered', async () => {
      const fallback = { model: 'spare', upstream_model: 'spare-1' };
      const calls = [{ ...modelCall, tokens: tokens(5), fallback }];
      const replay = { replay_id: 'replay_1', session_id: 'session_1', role: 'replay' };
      await apply(
        record('session_1', sessionStarted('agent_1')),
        ...turn('session_1', 1, turnFailed(1, { calls }), { at: `${DAYS[1]}T00:00:00.000Z` }),
        record('session_2', sessionStarted('agent_2', { replay })),
        record('session_2', turnStarted(1), { key: 'key_2', at: `${DAYS[1]}T23:59:59.999Z` }),
        record('session_2', turnInterrupted(1), { key: 'system', at: `${DAYS[2]}T00:00:00.000Z` }),
      );
      const by: UsageColumn[] = ['day', 'agent_id', 'model', 'key_id', 'kind', 'code'];
      expect(await sums('acct_1', { by })).toMatchObject([
        {
          day: DAYS[1],
          agent_id: 'agent_1',
          model: 'spare',
          key_id: 'key_1',
          kind: 'run',
          code: 'model_error',
          failed: 1,
          total_tokens: 6,
        },
        {
          day: DAYS[2],
          agent_id: 'agent_2',
          model: 'gpt-4o',
          key_id: 'key_2',
          kind: 'replay',
          code: 'crash',
          interrupted: 1,
          total_tokens: 0,
        },
      ]);
      expect(await sums('acct_1', { by: ['day'], from: DAYS[2]! })).toHaveLength(1);
      expect(await sums('acct_1', { by: ['day'], to: DAYS[1]! })).toMatchObject([{ failed: 1 }]);
    });

    test('counts the call of a summary, and no turn', async () => {
      await apply(
        record('session_1', sessionStarted('agent_1')),
        record('session_1', sessionCompacted(1, 1, { model: 'gpt-4o' })),
        record('session_1', sessionCompacted(1, 1)),
      );
      // An old summary has only the provider's name of its model.
      const call = { model_calls: 1, completed: 0, total_tokens: 2 };
      expect(await sums('acct_1', { limit: 1 })).toMatchObject([
        { model: 'gpt-4o', ...call },
        { model: 'gpt-4o-2026', ...call },
      ]);
    });

    test('outlives the erasure of its session, and goes with that of its account', async () => {
      const of = (account: string) => [
        fresh.record({ stream: `account-${account}`, account }, accountOpened()),
        record(`session_${account}`, sessionStarted('agent_1'), { account }),
        ...Array.from({ length: 200 }, (_, key) =>
          turn(`session_${account}`, key + 1, turnCompleted(key + 1), {
            account,
            key: `key_${key}`,
          }),
        ).flat(),
        record(`session_${account}`, sessionErased(), { account }),
      ];
      const events = [...of('acct_1'), ...of('acct_2')];
      await apply(...events);
      const completed = async (account: string) =>
        (await sums(account, { limit: 1_000 })).map((sum) => sum.completed);
      expect(await completed('acct_1')).toEqual([200]);
      const erased = fresh.record({ stream: 'account-acct_1' }, accountErased());
      await apply(erased);
      expect(await completed('acct_1')).toEqual([]);
      await apply(...events, erased);
      expect(await completed('acct_1')).toEqual([]);
      expect(await completed('acct_2')).toEqual([200]);
    });

    test.each([1, 100])(
      'is not added once its account is erased, %d events at a time',
      async (atOnce) => {
        const events = [
          fresh.record({ stream: 'account-acct_1' }, accountOpened()),
          record('session_2', sessionStarted('agent_1'), { account: 'acct_2' }),
          ...turn('session_2', 1, turnCompleted(1), { account: 'acct_2' }),
          record('session_1', sessionStarted('agent_1')),
          ...turn('session_1', 1, turnCompleted(1)),
          record('session_1', turnStarted(2)),
          fresh.record({ stream: 'account-acct_1' }, accountErased()),
          record('session_1', turnCompleted(2)),
          record('session_1', sessionCompacted(1, 2)),
          record('session_1', sessionErased({ reason: 'request' })),
        ];
        for (const given of [events, events.slice(-4)])
          for (let begin = 0; begin < given.length; begin += atOnce)
            await apply(...given.slice(begin, begin + atOnce));
        expect(await sums('acct_1')).toEqual([]);
        expect(await sums('acct_2')).toMatchObject([{ completed: 1 }]);
      },
    );

    test('is removed with a session of an erased account whose stream cannot record the erasure', async () => {
      await apply(
        record('session_1', sessionStarted('agent_1')),
        ...turn('session_1', 1, turnCompleted(1)),
        record('session_1', sessionErased({ reason: 'account' })),
      );
      expect(await sums('acct_1')).toEqual([]);
    });

    test('is read in slices of any size, each row once', async () => {
      await apply(
        ...['a', 'b', 'c', 'd', 'e'].flatMap((agent) => [
          record(agent, sessionStarted(agent)),
          ...turn(agent, 1, turnCompleted(1)),
        ]),
      );
      for (const limit of [1, 2, 4, 5, 6]) {
        const found = await sums('acct_1', { by: ['agent_id'], limit });
        expect(found.map(({ agent_id, completed }) => [agent_id, completed])).toEqual(
          ['a', 'b', 'c', 'd', 'e'].map((agent) => [agent, 1]),
        );
      }
    });
  });
}
