import { describe, expect, test } from '@jest/globals';
import { bytesOf, type StoredEvent } from '../../shared/ports/eventStore.ts';
import {
  accountOpened,
  agentCreated,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import { reached } from '../support/builders/history.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

const DAYS = ['2026-01-01', '2026-01-02'] as const;

/** What the read models count of each account's events: a part of the suite of their port. */
export function storageContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: storage`, () => {
    const fresh = freshReadModels(open);
    const find = async (account: string, day: string) => {
      const { today, total } = await fresh.readModels.findStorage(account, day);
      return {
        today: today && [today.events, today.bytes],
        total: total && [total.events, total.bytes],
      };
    };
    const sizeOf = (...events: readonly StoredEvent[]): number =>
      events.reduce((sum, event) => sum + bytesOf(event), 0);

    test('counts the events of an account by day and in total, once however often they are delivered', async () => {
      const opened = fresh.record({ stream: 'account-acct_1' }, accountOpened('one'));
      const mine = fresh.record(
        { stream: 'agent-agent_1', at: `${DAYS[1]}T00:00:00.000Z` },
        agentCreated(),
      );
      const other = fresh.record({ stream: 'agent-agent_2', account: 'acct_2' }, agentCreated());
      await fresh.apply(opened, mine);
      await fresh.apply(opened, mine, other);
      const total = [2, sizeOf(opened, mine)];
      expect(await find('acct_1', DAYS[0])).toEqual({ today: [1, sizeOf(opened)], total });
      expect(await find('acct_1', DAYS[1])).toEqual({ today: [1, sizeOf(mine)], total });
      expect(await find('acct_2', DAYS[1])).toEqual({
        today: undefined,
        total: [1, sizeOf(other)],
      });
      expect(await find('acct_3', DAYS[0])).toEqual({ today: undefined, total: undefined });
    });

    test('counts events of several accounts on one day, in one batch and after it', async () => {
      const create = (account: string, agent: string): StoredEvent =>
        fresh.record({ stream: `agent-${agent}`, account }, agentCreated());
      const [one, two, three] = [
        create('acct_1', 'agent_1'),
        create('acct_2', 'agent_2'),
        create('acct_2', 'agent_3'),
      ];
      const [four, five] = [create('acct_1', 'agent_4'), create('acct_2', 'agent_5')];
      await fresh.apply(one, two, three);
      await fresh.apply(four, five);
      const [first, second] = [
        [2, sizeOf(one, four)],
        [3, sizeOf(two, three, five)],
      ];
      expect(await find('acct_1', DAYS[0])).toEqual({ today: first, total: first });
      expect(await find('acct_2', DAYS[0])).toEqual({ today: second, total: second });
    });

    test('counts events that cannot be applied', async () => {
      const started = fresh.record({ stream: 'session-session_1' }, sessionStarted('agent_1'));
      const misplaced = fresh.record({ stream: 'session-session_1' }, turnCompleted(7));
      const later = fresh.record({ stream: 'session-session_1' }, turnStarted(1));
      const events = [started, misplaced, later];
      expect(await fresh.store.apply(events, reached(later.position))).toHaveLength(1);
      await fresh.apply(later);
      expect(await find('acct_1', DAYS[0])).toMatchObject({ total: [3, sizeOf(...events)] });
    });

    test('keeps the counts of erased accounts, whose events remain', async () => {
      const opened = fresh.record({ stream: 'account-acct_1' }, accountOpened('one'));
      const erased = fresh.record(
        { stream: 'account-acct_1' },
        { type: 'account.erased.v1', data: { key_ids: [] } },
      );
      await fresh.apply(opened, erased);
      expect(await find('acct_1', DAYS[0])).toMatchObject({ total: [2, sizeOf(opened, erased)] });
    });
  });
}
