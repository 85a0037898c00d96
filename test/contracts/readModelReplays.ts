import { describe, expect, test } from '@jest/globals';
import type { ReplayTurnFilter } from '../../shared/replays/sqlQueries.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { ANY_REPLAY, type SessionFilter } from '../../shared/sessions/sessionFilter.ts';
import {
  replayEnded,
  replayErased,
  replaySessionEnded,
  replaySessionStarted,
  replayStarted,
  replayTurnsCompared,
  sessionStarted,
  turnComparison,
} from '../support/builders/events.ts';
import { ALL } from '../support/stores/projections/agentsOf.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

const failed = { check: 0, passed: false };

/** What the read models say of replays: a part of the suite of their port. */
export function replaysContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: replays`, () => {
    const fresh = freshReadModels(open);
    const { apply } = fresh;

    const record = (
      id: string,
      event: Parameters<typeof fresh.record>[1],
      account = 'acct_1',
    ): StoredEvent => fresh.record({ stream: `replay-${id}`, account }, event);
    const turns = async (page: ReplayTurnFilter & { after?: string; limit?: number } = {}) =>
      (await fresh.readModels.listReplayTurns('replay_1', { ...ALL, ...page })).rows;
    const numbers = async (page: ReplayTurnFilter & { after?: string; limit?: number } = {}) =>
      (await turns(page)).map(({ session_id, turn }) => `${session_id}.${turn}`);

    test('come with what their turns come to, each counted once', async () => {
      await apply(record('replay_1', replayStarted({ up_to_turn: 1 })));
      expect(await fresh.readModels.findReplay('replay_1')).toMatchObject({
        account_id: 'acct_1',
        status: 'running',
        sums: { sessions: { total: 1, completed: 0 }, turns: { total: 1, same: 0 } },
      });
      const compared = record(
        'replay_1',
        replayTurnsCompared([
          turnComparison(1),
          turnComparison(2, { outcome: 'changed', requests: 'changed', checks: [failed] }),
          turnComparison(10, { outcome: 'skipped' }),
        ]),
      );
      await apply(compared, record('replay_1', replaySessionEnded()));
      await apply(compared, record('replay_1', replayEnded({ status: 'failed', code: 'x' })));
      const row = await fresh.readModels.findReplay('replay_1');
      expect(row).toMatchObject({
        status: 'failed',
        code: 'x',
        sums: {
          sessions: { total: 1, completed: 1 },
          turns: { total: 1, same: 1, changed: 1, failed: 0, skipped: 1 },
          requests: { same: 2, changed: 1 },
          checks: { passed: 0, failed: 1 },
          recorded: { tokens: { total: 36 }, duration_ms: 15, cost: null, unpriced: 3 },
          replayed: { tokens: { total: 36 }, duration_ms: 12 },
        },
      });
      expect(await fresh.readModels.findReplay('replay_2')).toBeUndefined();
    });

    test('come with their settings, and with what they replace', async () => {
      const instruction = 'Be kind.';
      const settings = { model: 'model_2', instruction, agent_revision: 3, up_to_turn: 1 };
      await apply(
        record('replay_1', replayStarted(settings)),
        record('replay_2', replayStarted()),
        record('replay_1', replayTurnsCompared([turnComparison(1)])),
      );
      expect(await fresh.readModels.findReplaySettings('replay_1')).toMatchObject({
        replay_id: 'replay_1',
        settings: { tools: 'recorded', ...settings },
        revision: 0,
      });
      const { rows } = await fresh.readModels.listReplays('acct_1', ALL);
      expect(rows.map(({ replacements }) => replacements)).toEqual([
        { instruction: false },
        { model: 'model_2', agent_revision: 3, instruction: true },
      ]);
      expect(await fresh.readModels.findReplaySettings('replay_3')).toBeUndefined();
    });

    test('show their turns by session and number, by outcome, and in pages', async () => {
      await apply(
        record('replay_1', replayStarted()),
        record(
          'replay_1',
          replayTurnsCompared([
            turnComparison(2),
            turnComparison(10, { outcome: 'changed', checks: [failed] }),
            turnComparison(11, { outcome: 'changed' }),
          ]),
        ),
        record('replay_2', replayStarted()),
        record('replay_2', replayTurnsCompared([turnComparison(1)])),
      );
      expect(await numbers()).toEqual(['session_1.2', 'session_1.10', 'session_1.11']);
      expect(await numbers({ only: 'changed' })).toEqual(['session_1.10', 'session_1.11']);
      expect(await numbers({ only: 'checks_failed' })).toEqual(['session_1.10']);
      expect(await numbers({ only: 'failed' })).toEqual([]);
      expect(await numbers({ session_id: 'session_1' })).toHaveLength(3);
      expect(await numbers({ session_id: 'session_' })).toEqual([]);
      const [first] = await turns({ limit: 1 });
      expect(await numbers({ after: first!.entry, limit: 1 })).toEqual(['session_1.10']);
      expect(first).toMatchObject({ replay_id: 'replay_1', comparison: turnComparison(2) });
    });

    test('show how far each of their sessions is', async () => {
      const sessions = ['session_1', 'session_2'].map((session_id) => ({
        session_id,
        revision: 4,
        turns: 2,
      }));
      await apply(
        record('replay_1', replayStarted({ sessions })),
        record('replay_1', replaySessionStarted('session_1')),
      );
      const { rows } = await fresh.readModels.listReplaySessions('replay_1', ALL);
      expect(rows).toMatchObject([
        { session_id: 'session_1', status: 'running', replay_session_id: 'session_2', turns: 2 },
        { session_id: 'session_2', status: 'waiting', replay_session_id: null },
      ]);
      await apply(record('replay_1', replaySessionEnded()));
      expect(await fresh.readModels.findReplaySession('replay_1', 'session_1')).toMatchObject({
        status: 'completed',
        code: null,
      });
      const after = { ...ALL, after: 'session_1' };
      expect((await fresh.readModels.listReplaySessions('replay_1', after)).rows).toHaveLength(1);
    });

    test('are listed by account, newest first; erased ones are not, and have no rows', async () => {
      const many = Array.from({ length: 300 }, (_, n) => n + 1);
      const sessions = many.map((n) => ({ session_id: `session_${n}`, revision: 4, turns: 2 }));
      const compared = many.map((n) => turnComparison(n, { outcome: 'changed', checks: [failed] }));
      await apply(
        record('replay_1', replayStarted({ instruction: 'secret', sessions })),
        record('replay_1', replayTurnsCompared(compared)),
        record('replay_2', replayStarted()),
        record('replay_3', replayStarted(), 'acct_2'),
        record('replay_4', replayStarted()),
      );
      const listed = async (after?: string) =>
        (
          await fresh.readModels.listReplays('acct_1', { ...ALL, ...(after && { after }) })
        ).rows.map(({ replay_id }) => replay_id);
      const running = (account?: string) => fresh.readModels.listRunningReplays(2, account);
      expect(await listed()).toEqual(['replay_4', 'replay_2', 'replay_1']);
      expect(await listed('replay_4')).toEqual(['replay_2', 'replay_1']);
      expect(await running()).toEqual(['replay_1', 'replay_2']);
      expect(await running('acct_2')).toEqual(['replay_3']);
      await apply(record('replay_1', replayErased()));
      expect(await listed()).toEqual(['replay_4', 'replay_2']);
      for (const filter of [{}, { only: 'changed' }, { only: 'checks_failed' }] as const)
        expect(await turns(filter)).toEqual([]);
      expect((await fresh.readModels.listReplaySessions('replay_1', ALL)).rows).toEqual([]);
      for (const { session_id } of sessions)
        expect(await fresh.readModels.findReplaySession('replay_1', session_id)).toBeUndefined();
      const row = await fresh.readModels.findReplay('replay_1');
      expect(row).toMatchObject({ status: 'erased' });
      expect(await fresh.readModels.findReplaySettings('replay_1')).toBeUndefined();
      expect(await running()).toEqual(['replay_2', 'replay_3']);
      expect(await running('acct_1')).toEqual(['replay_2', 'replay_4']);
    });

    test('have their sessions listed apart from others', async () => {
      const replay = { replay_id: 'replay_1', session_id: 'session_1', role: 'replay' as const };
      const session = (id: string, changes = {}) =>
        fresh.record(
          { stream: `session-${id}`, account: 'acct_1' },
          sessionStarted('agent_1', changes),
        );
      await apply(
        session('session_1'),
        session('session_2', { replay }),
        session('session_3', { replay: { ...replay, replay_id: 'replay_2' } }),
      );
      const listed = async (filter: SessionFilter) =>
        (await fresh.readModels.listSessions('acct_1', { ...ALL, ...filter })).rows.map(
          ({ session_id }) => session_id,
        );
      expect(await listed({})).toEqual(['session_1']);
      expect(await listed({ agent_id: 'agent_1' })).toEqual(['session_1']);
      expect(await listed({ replay_id: 'replay_1' })).toEqual(['session_2']);
      expect(await listed({ replay_id: ANY_REPLAY })).toEqual([
        'session_3',
        'session_2',
        'session_1',
      ]);
    });
  });
}
