import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { ANY_REPLAY, type SessionFilter } from '../../shared/sessions/sessionFilter.ts';
import {
  sessionDescribed,
  sessionErased,
  sessionStarted,
  turnFailed,
  turnStarted,
} from '../support/builders/events.ts';
import { ALL } from '../support/stores/projections/agentsOf.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

/** More than the entries of a first slice, and of an index that is read as a whole. */
const SESSIONS = LIMITS.sessionList.narrowIndex + LIMITS.sessionList.firstSlice;

const idOf = (nth: number): string => `session_${10_000 + nth}`;
const timeOf = (nth: number): string => new Date(nth * 60_000).toISOString();
/** The opposite order of the ids. */
const updatedAt = (nth: number): string => timeOf(3 * SESSIONS - nth);

interface Listed {
  nth: number;
  agent: string;
  labels: Record<string, string>;
  replay?: string;
  failed: boolean;
}

const SESSION = Array.from({ length: SESSIONS }, (_, nth): Listed => ({
  nth,
  agent: nth % 400 === 1 ? 'rare' : `agent_${nth % 2}`,
  labels: { a: String(nth % 2), ...(nth % 300 === 1 && { b: 'x' }) },
  ...(nth % 250 === 7 && { replay: `replay_${nth % 3}` }),
  failed: nth % 170 === 3,
}));

const matches = (
  { nth, agent, labels, replay, failed }: Listed,
  { agent_id = agent, replay_id, ...filter }: SessionFilter,
): boolean =>
  agent === agent_id &&
  (replay_id === ANY_REPLAY || replay === replay_id) &&
  (filter.labels ?? []).every(([name, value]) => labels[name] === value) &&
  (filter.created_from ?? '') <= timeOf(nth) &&
  timeOf(nth) < (filter.created_to ?? '9') &&
  (filter.updated_from ?? '') <= updatedAt(nth) &&
  updatedAt(nth) < (filter.updated_to ?? '9') &&
  filter.status !== 'running' &&
  (filter.outcome === undefined || (filter.outcome === 'failed' && failed));

const FILTERS: SessionFilter[] = [
  {},
  { replay_id: ANY_REPLAY },
  { agent_id: 'rare' },
  { agent_id: 'agent_0', labels: [['a', '1']] },
  { labels: [['b', 'x']] },
  { labels: [['a', '1'], ['b', 'x']] }, // prettier-ignore
  { status: 'running' },
  { status: 'idle', created_from: timeOf(SESSIONS - 3) },
  { status: 'idle', created_to: timeOf(3) },
  { agent_id: 'agent_1', created_from: timeOf(2), created_to: timeOf(9) },
  { updated_to: updatedAt(SESSIONS - 9) },
  { updated_from: updatedAt(9), labels: [['a', '0']] },
  { updated_to: updatedAt(-1), created_to: timeOf(2) },
  { outcome: 'failed' },
  { outcome: 'interrupted' },
  { outcome: 'failed', agent_id: 'agent_1', created_to: timeOf(SESSIONS - 200) },
  { outcome: 'failed', labels: [['a', '0']] },
  { replay_id: 'replay_1' },
  { replay_id: 'replay_1', agent_id: 'agent_1', created_from: timeOf(1) },
];

/** Lists that leave out most sessions of a large account. */
export function listsContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: lists of many sessions`, () => {
    const fresh = freshReadModels(open);

    const events = ({ nth, agent, labels, replay, failed }: Listed): StoredEvent[] => {
      const stream = `session-${idOf(nth)}`;
      const more = replay === undefined ? {} : { replay: replayOf(replay) };
      return [
        fresh.record({ stream, at: timeOf(nth) }, sessionStarted(agent, more)),
        ...(failed ? [turnStarted(1), turnFailed(1)] : []).map((event) =>
          fresh.record({ stream, at: timeOf(nth) }, event),
        ),
        fresh.record({ stream, at: updatedAt(nth) }, sessionDescribed(labels)),
      ];
    };
    const replayOf = (replay_id: string) => ({
      replay_id,
      session_id: 'session_1',
      role: 'replay',
    });

    /** All pages of a list, of which each is read from the cursor of the one before. */
    async function pages(
      filter: SessionFilter,
      limit: number,
      list: 'listSessions' | 'listSessionRevisions' = 'listSessions',
    ): Promise<string[]> {
      const found: string[] = [];
      for (let after: string | undefined; ;) {
        const page = { ...ALL, limit, ...filter, ...(after !== undefined && { after }) };
        const { rows, more } = await fresh.readModels[list]('acct_1', page);
        found.push(...rows.map(({ session_id }) => session_id));
        if (!more) return found;
        expect(rows.length).toBeGreaterThan(0);
        after = found.at(-1);
      }
    }

    test('have every session that matches, in order, and what was written last', async () => {
      await fresh.apply(...SESSION.flatMap(events));
      const gone = SESSION.at(-2)!;
      await fresh.apply(fresh.record({ stream: `session-${idOf(gone.nth)}` }, sessionErased()));
      const oldest = (filter: SessionFilter): string[] =>
        SESSION.filter((session) => session !== gone && matches(session, filter)).map(({ nth }) =>
          idOf(nth),
        );
      for (const filter of FILTERS) {
        const expected = oldest(filter);
        expect(await pages({ ...filter, order: 'oldest' }, 600)).toEqual(expected);
        expect(await pages(filter, 5_000)).toEqual(expected.toReversed());
        expect(await pages(filter, 5_000, 'listSessionRevisions')).toEqual(expected.toReversed());
        if (expected.length < 20) expect(await pages(filter, 2)).toEqual(expected.toReversed());
      }

      const [first] = SESSION;
      const labels = { late: 'yes' };
      const search: SessionFilter = { labels: [['a', '0']], updated_from: updatedAt(-9) };
      for (let write = 0; write < 5; write += 1) {
        expect(await pages(search, 5)).toEqual([]);
        const stream = `session-${idOf(first!.nth)}`;
        const at = updatedAt(-10 - write);
        await fresh.apply(fresh.record({ stream, at }, sessionDescribed({ a: '0', ...labels })));
        expect(await pages(search, 5)).toEqual([idOf(first!.nth)]);
        await fresh.apply(
          fresh.record({ stream, at: timeOf(1) }, sessionDescribed({ a: String(write) })),
        );
      }
    }, 60_000);

    test('end a page at its bytes, whichever slice they are in', async () => {
      await fresh.apply(...SESSION.flatMap(events));
      const filter: SessionFilter = {
        agent_id: 'rare',
        labels: [['a', '1']],
        replay_id: ANY_REPLAY,
      };
      const page = { limit: 9, bytes: 1 };
      const { rows, more } = await fresh.readModels.listSessions('acct_1', { ...page, ...filter });
      expect([rows.length, more]).toEqual([1, true]);
    }, 60_000);

    test('have only what pins the state of a session, of which the bytes of a page are', async () => {
      const fork = { forked_from: { session_id: 'session_1', turn: 2, revision: 7 } };
      await fresh.apply(
        fresh.record({ stream: 'session-session_2' }, sessionStarted('agent_1', fork)),
        fresh.record({ stream: 'session-session_2' }, sessionDescribed({ a: 'x'.repeat(500) })),
        fresh.record({ stream: 'session-session_3' }, sessionStarted()),
        fresh.record({ stream: 'session-session_3' }, turnStarted(1)),
      );
      const page = { limit: 9, bytes: 400 };
      for (const filter of [{}, { created_from: timeOf(0) }])
        expect(
          await fresh.readModels.listSessionRevisions('acct_1', { ...page, ...filter }),
        ).toEqual({
          rows: [
            { session_id: 'session_3', revision: 1, turns: 1, forked_from: null },
            { session_id: 'session_2', revision: 1, turns: 2, ...fork },
          ],
          more: false,
        });
    });

    test('end when the request is aborted', async () => {
      await fresh.apply(...SESSION.flatMap(events));
      const reason = new Error('the client is gone');
      const filter: SessionFilter = { labels: [['a', '0']], created_from: timeOf(1) };
      await expect(
        fresh.readModels.listSessions(
          'acct_1',
          { ...ALL, ...filter, agent_id: 'agent_1' },
          AbortSignal.abort(reason),
        ),
      ).rejects.toBe(reason);
    }, 60_000);
  });
}
