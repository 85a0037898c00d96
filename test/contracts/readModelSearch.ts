import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '../../shared/eventlog/eventTypes.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import {
  sessionDescribed,
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../support/builders/events.ts';
import type { EndedTurn } from '../../shared/search/turnIndex.ts';
import { positionOf, reached, recordHistory } from '../support/builders/history.ts';
import { ALL } from '../support/stores/projections/agentsOf.ts';
import type { ReadModelsFixture } from './readModels.ts';

/** The id of a session that began in that millisecond, the `n`th one of it. */
const idOf = (millisecond: number, n = 0): string => {
  const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
  let time = '';
  for (let rest = 1_790_000_000_000 + millisecond; time.length < 10; rest = Math.floor(rest / 32))
    time = ALPHABET[rest % 32]! + time;
  return `session_${time}${String(n).padStart(16, '0')}`;
};

/** What the read models find by words: a part of the suite of their port. */
export function searchContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: words`, () => {
    let fixture: ReadModelsFixture;
    let history: ReturnType<typeof recordHistory>;
    beforeEach(async () => {
      fixture = await open();
      history = recordHistory();
    });
    afterEach(() => fixture.close());

    const record = (id: string, event: DomainEvent, account = 'acct_1'): StoredEvent =>
      history.record({ stream: `session-${id}`, account }, event);
    /** A session whose turns say this. */
    const talk = (id: string, turns: readonly string[], account = 'acct_1', agent = 'agent_1') => [
      record(id, sessionStarted(agent), account),
      ...turns.flatMap((input, index) => [
        record(id, turnStarted(index + 1, { input }), account),
        record(id, turnCompleted(index + 1, { output: 'x' }), account),
      ]),
    ];
    async function apply(...events: StoredEvent[]): Promise<void> {
      const { position } = events.at(-1)!;
      expect(await fixture.store.apply(events, reached(position))).toEqual([]);
      fixture.announce(position, true);
    }
    const withTokens = (turns: readonly EndedTurn[]) =>
      turns.map((turn) => ({ ...turn, tokens: [...new Set(turn.input.split(' '))] }));
    /** Indexes all that waits, and says how many turns at a time. */
    async function indexAll(): Promise<number[]> {
      const sizes: number[] = [];
      for (;;) {
        const turns = await fixture.store.unindexed();
        if (turns.length === 0) return sizes;
        sizes.push(turns.length);
        await fixture.store.index(withTokens(turns));
      }
    }
    const find = async (words: string[], page = {}, account = 'acct_1') =>
      (await fixture.readModels.listSessions(account, { ...ALL, ...page, words })).rows.map(
        ({ session_id, matches }) => [session_id, ...matches!],
      );
    const [first, second, third] = [idOf(1), idOf(70_000), idOf(90_000_000)];

    test('are found where one ended turn has all of them, newest sessions first, with the turns', async () => {
      await apply(
        ...talk(second, ['apple pear', 'pear', 'apple plum pear']),
        ...talk(first, ['apple', 'pear']),
        ...talk(third, ['pear apple']),
        record(third, turnStarted(2, { input: 'running' })),
      );
      await indexAll();
      expect(await find(['apple', 'pear'])).toEqual([
        [third, 1],
        [second, 1, 3],
      ]);
      expect(await find(['pear'])).toEqual([
        [third, 1],
        [second, 1, 2, 3],
        [first, 2],
      ]);
      expect(await find(['pear'], { order: 'oldest' })).toEqual([
        [first, 2],
        [second, 1, 2, 3],
        [third, 1],
      ]);
      expect(await find(['running'])).toEqual([]);
      expect(await find(['app'])).toEqual([]);
    });

    test('are found of an account alone', async () => {
      await apply(...talk(first, ['apple']), ...talk(second, ['apple'], 'acct_2'));
      await indexAll();
      expect(await find(['apple'])).toEqual([[first, 1]]);
      expect(await find(['apple'], {}, 'acct_2')).toEqual([[second, 1]]);
      expect(await find(['apple'], {}, 'acct_3')).toEqual([]);
    });

    test('are found together with the other filters, page by page', async () => {
      const ids = Array.from({ length: 9 }, (_, n) => idOf(n < 5 ? 7 : n * 1_000_000, n));
      await apply(
        ...ids.flatMap((id, n) => talk(id, ['apple'], 'acct_1', `agent_${n % 2}`)),
        record(ids[4]!, sessionDescribed({ fruit: 'yes' })),
        record(ids[8]!, sessionDescribed({ fruit: 'yes' })),
      );
      await indexAll();
      const found = async (page = {}) => (await find(['apple'], page)).map(([id]) => id);
      const newest = ids.toReversed();
      expect(await found()).toEqual(newest);
      expect(await found({ agent_id: 'agent_1' })).toEqual([ids[7], ids[5], ids[3], ids[1]]);
      const labels = [['fruit', 'yes']];
      expect(await found({ labels })).toEqual([ids[8], ids[4]]);
      expect(await found({ labels, agent_id: 'agent_1' })).toEqual([]);
      for (const order of ['newest', 'oldest'] as const) {
        const pages: string[] = [];
        for (let more = true; more;) {
          const after = pages.at(-1);
          const page = await fixture.readModels.listSessions('acct_1', {
            ...ALL,
            limit: 2,
            order,
            words: ['apple'],
            ...(after !== undefined && { after }),
          });
          pages.push(...page.rows.map(({ session_id }) => session_id));
          more = page.more;
        }
        expect(pages).toEqual(order === 'newest' ? newest : ids);
      }
      const bounded = { ...ALL, bytes: 1, words: ['apple'] };
      const page = await fixture.readModels.listSessions('acct_1', bounded);
      expect([page.rows.length, page.more]).toEqual([1, true]);
    });

    test('are not sought for who has left', async () => {
      await apply(...talk(first, ['apple']));
      await indexAll();
      const search = { ...ALL, words: ['apple'] };
      const left = AbortSignal.abort(new Error('left'));
      const searching = fixture.readModels.listSessions('acct_1', search, left);
      await expect(searching).rejects.toThrow('left');
    });

    test('that many turns have are found where a filter leaves few sessions', async () => {
      const others = Array.from({ length: 12 }, (_, n) => idOf(100 + n));
      await apply(
        ...others.flatMap((id) => talk(id, ['apple pear', 'pear'])),
        ...talk(first, ['apple', 'x', 'pear apple'], 'acct_1', 'agent_2'),
        ...talk(second, ['pear apples'], 'acct_1', 'agent_2'),
        ...talk(third, ['apple pear'], 'acct_1', 'agent_2'),
        ...talk(idOf(5), ['apple pear'], 'acct_2', 'agent_2'),
      );
      await indexAll();
      const page = { agent_id: 'agent_2' };
      expect(await find(['apple'], page)).toEqual([
        [third, 1],
        [first, 1, 3],
      ]);
      expect(await find(['apple', 'pear'], { ...page, order: 'oldest' })).toEqual([
        [first, 3],
        [third, 1],
      ]);
      expect(await find(['apple', 'pear'], { ...page, after: third })).toEqual([[first, 3]]);
      expect(await find(['apple'], { ...page, limit: 1 })).toEqual([[third, 1]]);
      expect(await find(['apple'], { agent_id: 'agent_3' })).toEqual([]);
      await apply(record(third, sessionErased()));
      expect(await find(['apple'], page)).toEqual([[first, 1, 3]]);
    });

    test('name the first turns only of a session that has many', async () => {
      const turns = LIMITS.search.matches + 3;
      await apply(
        ...talk(
          first,
          Array.from({ length: turns }, () => 'apple'),
        ),
      );
      await indexAll();
      const [[, ...matches]] = (await find(['apple'])) as [[string, ...number[]]];
      expect(matches).toEqual(Array.from({ length: LIMITS.search.matches }, (_, n) => n + 1));
    });

    test('of an account are all indexed or not, whatever others have to index', async () => {
      const { readModels, store } = fixture;
      await apply(...talk(first, ['apple']), ...talk(second, ['pear', 'plum'], 'acct_2'));
      const hasUnindexed = async (account: string, upTo?: Position) => {
        const { ended, unindexed_from } = await readModels.indexProgress();
        return (
          unindexed_from !== null &&
          readModels.hasUnindexed(account, unindexed_from, upTo ?? ended!)
        );
      };
      expect(await hasUnindexed('acct_1')).toBe(true);
      const [apple, pear, plum] = withTokens(await store.unindexed());
      await store.index([apple!]);
      expect([await hasUnindexed('acct_1'), await hasUnindexed('acct_2')]).toEqual([false, true]);
      await store.index([pear!]);
      expect(await hasUnindexed('acct_2', pear!.end_position!)).toBe(false);
      expect(await hasUnindexed('acct_2')).toBe(true);
      await store.index([plum!]);
      expect(await hasUnindexed('acct_2')).toBe(false);
      expect(await readModels.indexProgress()).toMatchObject({ unindexed_from: null });
    });

    test('of an account are not all indexed while two later turns of the session have begun', async () => {
      const { readModels, store } = fixture;
      await apply(...talk(first, ['apple']));
      const { ended } = await readModels.indexProgress();
      await apply(
        ...[2, 3].flatMap((n) => [
          record(first, turnStarted(n, { input: 'pear' })),
          record(first, turnCompleted(n, { output: 'x' })),
        ]),
      );
      const { unindexed_from } = await readModels.indexProgress();
      expect(await readModels.hasUnindexed('acct_1', unindexed_from!, ended!)).toBe(true);
      await store.index(withTokens(await store.unindexed()));
      expect(await readModels.hasUnindexed('acct_1', unindexed_from!, ended!)).toBe(false);
    });

    test('are indexed a few turns of each account at a time, whatever waits before them', async () => {
      const { readModels, store } = fixture;
      const many = Array.from({ length: 3 * LIMITS.search.turnsAtOnce }, (_, n) => idOf(n));
      await apply(
        ...many.flatMap((id) => talk(id, ['flood'])),
        ...talk(third, ['apple', 'pear'], 'acct_2'),
      );
      const turns: EndedTurn[] = [];
      // A store may look at fewer accounts at once when it is slow.
      for (let last: string | undefined = ''; last !== undefined;) {
        const found = await store.unindexedOfAccounts(last);
        turns.push(...found.turns);
        last = found.last;
      }
      const of = (account: string) => turns.filter(({ account_id }) => account_id === account);
      expect(of('acct_1')).toHaveLength(LIMITS.search.turnsOfAccount);
      expect(of('acct_2')).toMatchObject([
        { session_id: third, turn: 1, input: 'apple' },
        { session_id: third, turn: 2, input: 'pear' },
      ]);
      await store.index(withTokens(of('acct_2')), true);
      expect(await find(['pear'], {}, 'acct_2')).toEqual([[third, 2]]);
      const { ended, indexed, unindexed_from } = await readModels.indexProgress();
      expect(indexed).toBeNull();
      expect(await readModels.hasUnindexed('acct_2', unindexed_from!, ended!)).toBe(false);
      expect((await store.unindexedOfAccounts('acct_1')).turns).toEqual([]);
      const isIndexed: boolean[] = [];
      for (let next = await store.unindexed(); next.length > 0; next = await store.unindexed()) {
        isIndexed.push(...next.map((turn) => turn.is_indexed));
        await store.index(withTokens(next));
      }
      expect(isIndexed).toEqual([...many.map(() => false), true, true]);
      expect(await find(['pear'], {}, 'acct_2')).toEqual([[third, 2]]);
      expect((await store.unindexedOfAccounts('')).turns).toEqual([]);
    });

    test('may be missing from turns, which are indexed once as well, a few at a time and in order', async () => {
      const { readModels, store } = fixture;
      const { turnsOfAccount } = LIMITS.search;
      const dots = Array.from({ length: turnsOfAccount }, () => '.');
      await apply(
        ...talk(first, ['apple']),
        ...talk(second, [...dots, 'pear'], 'acct_2'),
        record(second, turnStarted(turnsOfAccount + 2, { input: '.' }), 'acct_2'),
      );
      const { ended, unindexed_from } = await readModels.indexProgress();
      const isBehind = () => readModels.hasUnindexed('acct_2', unindexed_from!, ended!);
      const turnsAfterFirst = async () => (await store.unindexedOfAccounts('acct_1')).turns;
      const some = await turnsAfterFirst();
      expect(some.map(({ turn }) => turn)).toEqual(dots.map((_, n) => n + 1));
      await store.index(
        some.map((turn) => ({ ...turn, tokens: [] })),
        true,
      );
      const rest = await turnsAfterFirst();
      expect(rest).toMatchObject([{ turn: turnsOfAccount + 1, input: 'pear' }]);
      expect(await isBehind()).toBe(true);
      await store.index(
        rest.map((turn) => ({ ...turn, tokens: [] })),
        true,
      );
      expect(await isBehind()).toBe(false);
      expect(await turnsAfterFirst()).toEqual([]);
      const next = await store.unindexed();
      expect(next.map((turn) => turn.is_indexed)).toEqual([false, ...some.map(() => true), true]);
      await store.index(withTokens(next));
      expect(await find(['pear'], {}, 'acct_2')).toEqual([]);
      expect(await find(['apple'])).toEqual([[first, 1]]);
    });

    test('are of turns that failed as well', async () => {
      await apply(
        record(first, sessionStarted('agent_1')),
        record(first, turnStarted(1, { input: 'apple' })),
        record(first, turnFailed(1)),
      );
      await indexAll();
      expect(await find(['apple'])).toEqual([[first, 1]]);
    });

    test('are indexed in the order in which turns ended, and each turn once, also after a restart', async () => {
      const progress = async () => {
        const { ended, indexed } = await fixture.readModels.indexProgress();
        return { ended, indexed, waiting: await fixture.readModels.countUnindexed() };
      };
      await apply(...talk(first, ['apple', 'pear']));
      expect(await progress()).toEqual({ ended: positionOf(5), indexed: null, waiting: 2 });
      const [one, two] = withTokens(await fixture.store.unindexed());
      expect([one, two]).toMatchObject([
        { session_id: first, account_id: 'acct_1', turn: 1, input: 'apple', output: 'x' },
        { turn: 2, input: 'pear' },
      ]);
      await fixture.store.index([one!]);
      fixture = await fixture.reopen();
      fixture.announce(positionOf(5), true);
      expect(await progress()).toEqual({
        ended: positionOf(5),
        indexed: positionOf(3),
        waiting: 1,
      });
      expect(await find(['pear'])).toEqual([]);
      expect(await fixture.store.unindexed()).toMatchObject([{ turn: 2 }]);
      await fixture.store.index([two!]);
      await fixture.store.index([one!]);
      expect(await fixture.store.unindexed()).toEqual([]);
      expect(await find(['pear'])).toEqual([[first, 2]]);
      expect(await find(['apple'])).toEqual([[first, 1]]);
      expect(await progress()).toMatchObject({ indexed: positionOf(5), waiting: 0 });
    });

    test('wait in pieces that are bounded, a longer turn being one by itself', async () => {
      const { turnsAtOnce, charactersAtOnce } = LIMITS.search;
      const long = 'long '.repeat(charactersAtOnce / 5);
      await apply(
        ...talk(first, [long, ...Array.from({ length: turnsAtOnce + 1 }, () => 'short'), long]),
      );
      expect(await indexAll()).toEqual([1, turnsAtOnce, 1, 1]);
      expect(await find(['long'])).toEqual([[first, 1, turnsAtOnce + 3]]);
    });

    test('of an erased session are gone, and do not come back', async () => {
      await apply(...talk(first, ['apple']), ...talk(second, ['apple']), ...talk(third, ['apple']));
      const waiting = withTokens(await fixture.store.unindexed());
      await fixture.store.index(waiting.slice(0, 1));
      await apply(record(first, sessionErased()), record(second, sessionErased()));
      await fixture.store.index(waiting);
      expect(await find(['apple'])).toEqual([[third, 1]]);
      fixture = await fixture.reopen();
      fixture.announce(history.lastPosition(), true);
      expect(await find(['apple'])).toEqual([[third, 1]]);
      expect(await fixture.store.unindexed()).toEqual([]);
    });
  });
}
