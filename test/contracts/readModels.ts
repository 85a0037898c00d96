import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Page, ProjectionStore, ReadModels } from '../../shared/ports/readModels.ts';
import type { SessionEvent } from '../../shared/sessions/events.ts';
import type { SessionFilter } from '../../shared/sessions/sessionFilter.ts';
import { fold, rowMaps } from '../../shared/projections/fold.ts';
import { planBatch } from '../../shared/projections/plan.ts';
import { eventually } from '../support/processes/operator.ts';
import {
  accountErased,
  accountOpened,
  agentCreated,
  agentData,
  agentDeleted,
  agentErased,
  at,
  keyIssued,
  keyRevoked,
  keyRotated,
  sessionDescribed,
  sessionErased,
  sessionRow,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../support/builders/events.ts';
import { positionOf, recordHistory, reached } from '../support/builders/history.ts';
import { deliveries, randomHistory } from '../support/builders/randomHistory.ts';
import { size } from '../support/jest/size.ts';
import { agentsOf, ALL } from '../support/stores/projections/agentsOf.ts';
import { integrityContract } from './readModelIntegrity.ts';
import { storageContract } from './readModelStorage.ts';
import { usageContract } from './readModelUsage.ts';
import { replaysContract } from './readModelReplays.ts';
import { listsContract } from './readModelLists.ts';
import { searchContract } from './readModelSearch.ts';
import { webhooksContract } from './readModelWebhooks.ts';

export interface ReadModelsFixture {
  store: ProjectionStore;
  readModels: ReadModels;
  /** Tells the read models how far the projector is, as it would itself after `store.apply`. */
  announce(position: Position, caughtUp: boolean): void;
  /** Closes both halves and opens them again on the same data; nothing is announced yet. */
  reopen(): Promise<ReadModelsFixture>;
  close(): Promise<void>;
}

const checkpointOf = (events: readonly StoredEvent[]): Position =>
  (events.at(-1) as StoredEvent).position;
const byId = <Row>(rows: Map<string, Row>): Row[] =>
  [...rows.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
const unavailable = (error: unknown): boolean =>
  isTurnlogError(error, 'store_unavailable') && error.retriable;

/**
 * The suite that every adapter of the read models port passes. `open` gives empty read models to
 * which nothing was announced.
 */
export function readModelsContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  usageContract(name, open);
  storageContract(name, open);
  webhooksContract(name, open);
  replaysContract(name, open);
  searchContract(name, open);
  listsContract(name, open);
  integrityContract(name, open);
  let fixture: ReadModelsFixture;
  let history: ReturnType<typeof recordHistory>;

  beforeEach(async () => {
    fixture = await open();
    history = recordHistory();
  });
  afterEach(() => fixture.close());

  async function apply(...events: StoredEvent[]) {
    const parked = await fixture.store.apply(events, reached(checkpointOf(events)));
    fixture.announce(checkpointOf(events), true);
    return parked;
  }

  const record = (
    stream: string,
    event: Parameters<typeof history.record>[1],
    account = 'acct_1',
  ): StoredEvent => history.record({ stream, account }, event);
  const openAccount = (id: string) => record(`account-${id}`, accountOpened(`name of ${id}`), id);
  const issueKey = (key: string, account = 'acct_1', hash = 'ab'.repeat(32)) =>
    record(`account-${account}`, keyIssued(key, { hash }), account);
  const createAgent = (id: string, account = 'acct_1', changes = {}) =>
    record(`agent-${id}`, agentCreated(changes), account);
  const startSession = (id: string, agent = 'agent_1', account = 'acct_1') =>
    record(`session-${id}`, sessionStarted(agent), account);

  const ids = async (account: string, page = {}) =>
    (await fixture.readModels.listAgents(account, { ...ALL, ...page })).rows.map(
      (row) => row.agent_id,
    );
  const version = () => fixture.readModels.agentListVersion('acct_1');

  test(`${name}: the sessions that replays made of one are listed in pages, without erased ones`, async () => {
    const replayed = (id: string, of: string) =>
      record(
        `session-${id}`,
        sessionStarted('agent_1', {
          replay: { replay_id: 'replay_1', session_id: of, role: 'replay' },
        }),
      );
    await apply(
      startSession('session_1'),
      replayed('session_2', 'session_1'),
      replayed('session_3', 'session_1'),
      replayed('session_4', 'session_3'),
      replayed('session_5', 'session_1'),
    );
    await apply(record('session-session_3', sessionErased()));
    const list = async (id: string, page = {}) => {
      const found = await fixture.readModels.listReplaysOf(id, { ...ALL, ...page });
      return [found.rows.map(({ session_id }) => session_id), found.more];
    };
    expect(await list('session_1')).toEqual([['session_2', 'session_5'], false]);
    expect(await list('session_1', { limit: 1 })).toEqual([['session_2'], true]);
    expect(await list('session_1', { after: 'session_2' })).toEqual([['session_5'], false]);
    expect(await list('session_3')).toEqual([['session_4'], false]);
    expect(await list('session_2')).toEqual([[], false]);
  });

  test('the sessions that were forked from one are listed, and the newest of an agent is found', async () => {
    const forked = { forked_from: { session_id: 'session_1', turn: 1 } };
    const begin = (id: string, agent: string, more = {}) =>
      record(`session-${id}`, sessionStarted(agent, more));
    await apply(
      begin('session_1', 'agent_1'),
      begin('session_2', 'agent_1', forked),
      begin('session_3', 'agent_1', forked),
      begin('session_4', 'agent_2', forked),
    );
    await apply(record('session-session_3', sessionErased()));
    const { listForksOf, findNewestSessionOf } = fixture.readModels;
    const forksOf = async (id: string, page = {}) => {
      const found = await listForksOf(id, { ...ALL, ...page });
      return [found.rows.map(({ session_id }) => session_id), found.more];
    };
    expect(await forksOf('session_1')).toEqual([['session_2', 'session_4'], false]);
    expect(await forksOf('session_1', { limit: 1 })).toEqual([['session_2'], true]);
    expect(await forksOf('session_1', { after: 'session_2' })).toEqual([['session_4'], false]);
    expect(await forksOf('session_2')).toEqual([[], false]);
    expect((await findNewestSessionOf('agent_1'))?.agent_id).toBe('agent_1');
    expect((await findNewestSessionOf('agent_2'))?.session_id).toBe('session_4');
    expect(await findNewestSessionOf('agent_3')).toBeUndefined();
    await apply(record('session-session_4', sessionErased()));
    expect(await findNewestSessionOf('agent_2')).toBeUndefined();
  });

  describe(`${name}: what was erased`, () => {
    const SECRET = 'a text of somebody';
    const talk = (id: string) => [
      startSession(id),
      record(`session-${id}`, turnStarted(1, { input: SECRET })),
      record(`session-${id}`, turnCompleted(1, { output: SECRET })),
    ];

    test('a session keeps its row, leaves the list, and has no turns; others keep theirs', async () => {
      await apply(...talk('session_1'), ...talk('session_2'));
      await apply(record('session-session_1', sessionErased()));
      const { readModels } = fixture;
      const erased = await readModels.findTranscript('acct_1', 'session_1', ALL);
      expect(erased).toMatchObject({
        session: { status: 'erased', turns: 1 },
        turns: { rows: [] },
      });
      for (const filter of [{}, { agent_id: 'agent_1' }]) {
        const { rows } = await readModels.listSessions('acct_1', { ...ALL, ...filter });
        expect(rows.map(({ session_id }) => session_id)).toEqual(['session_2']);
      }
      const other = await readModels.findTranscript('acct_1', 'session_2', ALL);
      expect(other?.turns.rows).toMatchObject([{ input: SECRET, output: SECRET }]);
      expect(await readModels.listOpenTurns()).toEqual([]);
    });

    test('an agent is found, without its texts, and in no list, whose version is another one', async () => {
      await apply(createAgent('agent_1', 'acct_1', { name: SECRET }), createAgent('agent_2'));
      const before = await version();
      await apply(record('agent-agent_1', agentErased()));
      expect(await fixture.readModels.findAgent('agent_1')).toMatchObject({
        name: '',
        instruction: '',
        erased: true,
      });
      expect(await ids('acct_1')).toEqual(['agent_2']);
      expect(await version()).not.toBe(before);
    });

    test('a deleted agent is in the list of what is still to be erased, until it is', async () => {
      await apply(createAgent('agent_1'), createAgent('agent_2'));
      await apply(record('agent-agent_1', { type: 'agent.deleted.v1', data: agentData() }));
      expect([await ids('acct_1'), await ids('acct_1', { deleted: true })]).toEqual([
        ['agent_2'],
        ['agent_1', 'agent_2'],
      ]);
      await apply(record('agent-agent_1', agentErased()));
      expect(await ids('acct_1', { deleted: true })).toEqual(['agent_2']);
    });

    test('an account is in no list and has no keys, but there were some', async () => {
      await apply(openAccount('acct_1'), issueKey('key_1'));
      await apply(record('account-acct_1', accountErased()));
      const { readModels } = fixture;
      expect(await readModels.listAccounts()).toEqual([]);
      expect(await readModels.findAccount('acct_1')).toMatchObject({ name: '', erased: true });
      expect([
        await readModels.findApiKey('key_1'),
        (await readModels.listApiKeys('acct_1', ALL)).rows,
      ]).toEqual([undefined, []]);
      expect(await readModels.findApiKeyByHash('ab'.repeat(32))).toBeUndefined();
      expect(await readModels.hasApiKeys()).toBe(true);
    });

    test('is listed, the last first, down to a position', async () => {
      await apply(...talk('session_1'), createAgent('agent_1'), ...talk('session_2'));
      const erasures = [
        record('session-session_1', sessionErased()),
        record('agent-agent_1', agentErased()),
        record('session-session_2', sessionErased()),
      ];
      await apply(...erasures);
      const list = async (downTo?: Position, limit = 10) =>
        (await fixture.readModels.listErasures({ downTo, limit })).map(({ stream }) => stream);
      expect(await list()).toEqual(['session-session_2', 'agent-agent_1', 'session-session_1']);
      expect(await list(erasures[1]!.position)).toEqual(['session-session_2', 'agent-agent_1']);
      expect(await list(undefined, 1)).toEqual(['session-session_2']);
      const next = async (after?: Position, limit = 10) =>
        (await fixture.readModels.listErasuresAfter({ after, limit })).map(({ stream }) => stream);
      expect(await next(undefined, 2)).toEqual(['session-session_1', 'agent-agent_1']);
      expect(await next(erasures[1]!.position)).toEqual(['session-session_2']);
    });

    test('does not come back with earlier events, and is not parked any more', async () => {
      const events = talk('session_1');
      const broken = { ...record('session-session_1', toolCalled(7)), data: '{' };
      await apply(...events);
      expect(await apply(broken)).toHaveLength(1);
      const erasure = record('session-session_1', sessionErased());
      expect(await apply(erasure)).toEqual([]);
      await apply(...events, broken, erasure);
      const { readModels } = fixture;
      expect((await readModels.findTranscript('acct_1', 'session_1', ALL))?.turns.rows).toEqual([]);
      expect(await readModels.listParkedStreams(10)).toEqual({ count: 0, streams: [] });
    });
  });

  describe(`${name}: accounts and keys`, () => {
    test('finds and lists what was opened and issued, and nothing else', async () => {
      await apply(
        openAccount('acct_1'),
        openAccount('acct_2'),
        issueKey('key_2'),
        issueKey('key_1'),
        issueKey('key_3', 'acct_2'),
      );
      const { readModels } = fixture;
      expect((await readModels.listAccounts())[0]).toEqual({
        account_id: 'acct_1',
        name: 'name of acct_1',
        opened_at: at(0),
        limits: {},
        retention: {},
        hold: { held: false },
        erased: false,
        revision: 2,
      });
      expect((await readModels.listAccounts()).map((row) => row.account_id)).toEqual([
        'acct_1',
        'acct_2',
      ]);
      expect(await readModels.findApiKey('key_2')).toEqual({
        key_id: 'key_2',
        account_id: 'acct_1',
        name: 'name of key_2',
        hash: 'ab'.repeat(32),
        scopes: ['agents:read', 'agents:run'],
        issued_at: at(2),
        issued_by: 'key_1',
        expires_at: null,
        replaced_by: null,
        revoked_at: null,
        revoked_by: null,
        revision: 1,
      });
      expect(await readModels.findApiKey('key_9')).toBeUndefined();
      await apply(issueKey('key_4', 'acct_2', 'cd'.repeat(32)));
      expect((await readModels.findApiKeyByHash('cd'.repeat(32)))?.key_id).toBe('key_4');
      expect((await readModels.findApiKeyByHash('ab'.repeat(32)))?.key_id).toBe('key_1');
      expect(await readModels.findApiKeyByHash('ef'.repeat(32))).toBeUndefined();
      expect((await readModels.listApiKeys('acct_1', ALL)).rows.map((row) => row.key_id)).toEqual([
        'key_1',
        'key_2',
      ]);
    });

    test('lists keys by page, all of them or those that are valid at an instant', async () => {
      await apply(
        openAccount('acct_1'),
        ...['key_1', 'key_2', 'key_3', 'key_4'].map((key) => issueKey(key)),
        record('account-acct_1', keyRevoked('key_1')),
        record('account-acct_1', keyRotated('key_2', 'key_4', at(90))),
        openAccount('acct_2'),
        issueKey('key_5', 'acct_2'),
      );
      const list = async (page: object) => {
        const { rows, more } = await fixture.readModels.listApiKeys('acct_1', { ...ALL, ...page });
        return [rows.map(({ key_id }) => key_id), more];
      };
      expect(await list({ limit: 3 })).toEqual([['key_1', 'key_2', 'key_3'], true]);
      expect(await list({ limit: 3, after: 'key_3' })).toEqual([['key_4'], false]);
      expect(await list({ activeAt: at(89) })).toEqual([['key_2', 'key_3', 'key_4'], false]);
      expect(await list({ activeAt: at(90) })).toEqual([['key_3', 'key_4'], false]);
      expect(await fixture.readModels.findApiKey('key_2')).toMatchObject({
        replaced_by: 'key_4',
        expires_at: at(90),
        revoked_at: null,
      });
    });

    test('pages and counts accounts: an erased one counts, but is not listed', async () => {
      await apply(...['acct_1', 'acct_2', 'acct_3'].map((account) => openAccount(account)));
      await apply(record('account-acct_2', accountErased()));
      const { readModels } = fixture;
      const page = async (after: object) => {
        const { rows, more } = await readModels.pageAccounts({ ...ALL, limit: 1, ...after });
        return [rows.map(({ account_id }) => account_id), more];
      };
      expect(await page({})).toEqual([['acct_1'], true]);
      expect(await page({ after: 'acct_1' })).toEqual([['acct_3'], false]);
      expect(await readModels.countAccounts()).toBe(3);
    });

    test('knows whether any key was ever issued, a revoked one included', async () => {
      await apply(openAccount('acct_1'));
      expect(await fixture.readModels.hasApiKeys()).toBe(false);
      await apply(issueKey('key_1'), record('account-acct_1', keyRevoked('key_1')));
      expect(await fixture.readModels.hasApiKeys()).toBe(true);
      expect((await fixture.readModels.findApiKey('key_1'))?.revoked_at).toBe(at(2));
    });
  });

  describe(`${name}: work that is asked for at once`, () => {
    test('is done one piece after the other, and to its end before it closes', async () => {
      const [first, second] = [createAgent('agent_1'), createAgent('agent_2')];
      const { store } = fixture;
      const done = Promise.all([
        store.apply([first], reached(first.position)),
        store.apply([second], reached(second.position)),
        store.checkpoint(),
        store.close(),
      ]);
      expect(await done).toEqual([[], [], reached(second.position).checkpoint, undefined]);
      fixture = await fixture.reopen();
      expect(await fixture.store.checkpoint()).toEqual(reached(second.position).checkpoint);
      fixture.announce(second.position, true);
      expect(await ids('acct_1')).toEqual(['agent_1', 'agent_2']);
    });
  });

  describe(`${name}: agents`, () => {
    test('lists the agents of one account, oldest first, all or by pages', async () => {
      await apply(
        createAgent('agent_3'),
        createAgent('agent_1'),
        createAgent('agent_9', 'acct_2'),
        createAgent('agent_2'),
      );
      expect(await ids('acct_1')).toEqual(['agent_1', 'agent_2', 'agent_3']);
      expect(await ids('acct_1', { limit: 2 })).toEqual(['agent_1', 'agent_2']);
      expect(await ids('acct_1', { limit: 2, after: 'agent_2' })).toEqual(['agent_3']);
      expect(await ids('acct_1', { after: 'agent_3' })).toEqual([]);
      expect(await ids('acct_2')).toEqual(['agent_9']);
      expect(await ids('acct_3')).toEqual([]);
    });

    test('gives back every text as it was, long, empty and unusual ones included', async () => {
      const texts = {
        name: '',
        instruction: `${'x'.repeat(500_000)}\n\t"'\\ \u{1F469}‍\u{1F680} é é 漢字`,
        component: 'Chat',
        compaction: false,
        parameters: {
          temperature: 0.5,
          response_format: {
            type: 'json_schema' as const,
            json_schema: { name: 'n', schema: '{"b":"é","a":"\\n"}' },
          },
        },
      };
      await apply(
        createAgent('agent_1', 'acct_1', { ...texts, tool: 'clock' }),
        createAgent('agent_2'),
      );
      expect(await fixture.readModels.findAgent('agent_1')).toEqual({
        agent_id: 'agent_1',
        account_id: 'acct_1',
        ...texts,
        model: 'gpt-4o',
        tool: 'clock',
        created_at: at(0),
        updated_at: at(0),
        deleted: false,
        erased: false,
        position: positionOf(1),
        revision: 0,
      });
      expect(await fixture.readModels.findAgent('agent_2')).toMatchObject({
        tool: null,
        parameters: null,
      });
    });

    test('neither finds nor lists a deleted agent', async () => {
      await apply(
        createAgent('agent_1'),
        createAgent('agent_2'),
        record('agent-agent_1', agentDeleted()),
      );
      expect(await fixture.readModels.findAgent('agent_1')).toBeUndefined();
      expect(await ids('acct_1')).toEqual(['agent_2']);
    });

    test("changes the version of an account's list with every change of its agents and with no other event", async () => {
      await apply(openAccount('acct_1'));
      const versions = [await version()];
      const changes = [() => createAgent('agent_1'), () => createAgent('agent_2')];
      const types = ['agent.updated.v1', 'agent.deleted.v1'] as const;
      for (const change of [
        ...changes,
        ...types.map((type) => () => record('agent-agent_1', { type, data: agentData() })),
      ]) {
        await apply(change());
        versions.push(await version());
        await apply(
          createAgent(`agent_${versions.length}9`, 'acct_2'),
          startSession(`session_${versions.length}`),
        );
        expect(await version()).toBe(versions.at(-1));
      }
      expect(new Set(versions).size).toBe(5);
    });
  });

  describe(`${name}: sessions and turns`, () => {
    test('lists the sessions of one account, newest first, by pages and by agent', async () => {
      await apply(
        startSession('session_1', 'agent_a'),
        startSession('session_2', 'agent_b'),
        startSession('session_3', 'agent_a'),
        startSession('session_4', 'agent_a', 'acct_2'),
      );
      const pageOf = async (page: Partial<Page> & { agent_id?: string }, account = 'acct_1') =>
        (await fixture.readModels.listSessions(account, { ...ALL, ...page })).rows.map(
          (row) => row.session_id,
        );
      expect(await pageOf({ limit: 10 })).toEqual(['session_3', 'session_2', 'session_1']);
      expect(await pageOf({ limit: 1 })).toEqual(['session_3']);
      expect(await pageOf({ limit: 10, after: 'session_3' })).toEqual(['session_2', 'session_1']);
      expect(await pageOf({ limit: 10, agent_id: 'agent_a' })).toEqual(['session_3', 'session_1']);
      expect(await pageOf({ limit: 10, agent_id: 'agent_a', after: 'session_3' })).toEqual([
        'session_1',
      ]);
      expect(await pageOf({ limit: 10 }, 'acct_2')).toEqual(['session_4']);
      expect(await fixture.readModels.findSession('session_2')).toEqual(
        sessionRow({
          session_id: 'session_2',
          agent_id: 'agent_b',
          created_at: at(1),
          updated_at: at(1),
        }),
      );
      expect(await fixture.readModels.findSession('session_9')).toBeUndefined();
    });

    describe('that are filtered', () => {
      const list = async (page: Partial<Page> & SessionFilter, account = 'acct_1') =>
        (await fixture.readModels.listSessions(account, { ...ALL, ...page })).rows.map(
          ({ session_id }) => session_id,
        );
      const described = (id: string, labels: Record<string, string>, account = 'acct_1') =>
        record(`session-${id}`, sessionDescribed(labels, `title of ${id}`), account);

      beforeEach(async () => {
        await apply(
          startSession('session_1', 'agent_a'),
          startSession('session_2', 'agent_b'),
          startSession('session_3', 'agent_a'),
          startSession('session_4', 'agent_a'),
          startSession('session_5', 'agent_a', 'acct_2'),
          described('session_1', { a: '1', b: '2' }),
          described('session_2', { a: '1', b: '3' }),
          described('session_3', { a: '1' }),
          described('session_5', { a: '1', b: '2' }, 'acct_2'),
          record('session-session_3', turnStarted(1)),
        );
      });

      test('have all of the labels, the agent, the status and the time', async () => {
        const a = ['a', '1'] as const;
        expect(await list({ labels: [a] })).toEqual(['session_3', 'session_2', 'session_1']);
        expect(await list({ labels: [a, ['b', '2']] })).toEqual(['session_1']);
        expect(await list({ labels: [['b', '2'], a] })).toEqual(['session_1']);
        expect(await list({ labels: [['a', '2']] })).toEqual([]);
        expect(await list({ labels: [a], agent_id: 'agent_a' })).toEqual([
          'session_3',
          'session_1',
        ]);
        expect(await list({ labels: [a], status: 'running' })).toEqual(['session_3']);
        expect(await list({ status: 'running' })).toEqual(['session_3']);
        expect(await list({ status: 'idle' })).toEqual(['session_4', 'session_2', 'session_1']);
        expect(await list({ created_from: at(1), created_to: at(3) })).toEqual([
          'session_3',
          'session_2',
        ]);
        expect(await list({ updated_from: at(7) })).toEqual(['session_3']);
        expect(await list({ updated_to: at(5), labels: [a] })).toEqual([]);
        expect(await list({ updated_to: at(6), labels: [a] })).toEqual(['session_1']);
        expect(await list({ labels: [a] }, 'acct_2')).toEqual(['session_5']);
        expect(await list({ labels: [['a', "1' OR 1=1 --"]] })).toEqual([]);
        expect(await list({ labels: [['a', '\0']] })).toEqual([]);
      });

      test('have a turn that ended as asked, and none once they are erased', async () => {
        const end = (session: string, turn: number, event: SessionEvent) => [
          record(`session-${session}`, turnStarted(turn)),
          record(`session-${session}`, event),
        ];
        await apply(
          ...end('session_1', 1, turnCompleted(1)),
          ...end('session_1', 2, turnFailed(2)),
          ...end('session_1', 3, turnCompleted(3)),
          ...end('session_2', 1, turnInterrupted(1)),
          ...end('session_4', 1, turnFailed(1)),
        );
        expect(await list({ outcome: 'completed' })).toEqual(['session_1']);
        expect(await list({ outcome: 'failed' })).toEqual(['session_4', 'session_1']);
        expect(await list({ outcome: 'interrupted' })).toEqual(['session_2']);
        expect(await list({ outcome: 'failed', agent_id: 'agent_b' })).toEqual([]);
        expect(await list({ outcome: 'failed', labels: [['b', '2']] })).toEqual(['session_1']);
        expect(await list({ outcome: 'failed' }, 'acct_2')).toEqual([]);
        await apply(record('session-session_4', sessionErased()));
        expect(await list({ outcome: 'failed' })).toEqual(['session_1']);
      });

      test('come in either order, page by page', async () => {
        const labels = [['a', '1']] as const;
        for (const filter of [{}, { labels }, { created_from: at(0) }]) {
          const all = await list(filter);
          expect(await list({ ...filter, order: 'oldest' })).toEqual(all.toReversed());
          for (const order of ['newest', 'oldest'] as const) {
            const walked: string[] = [];
            for (;;) {
              const last = walked.at(-1);
              const [next] = await list({
                ...filter,
                order,
                limit: 1,
                ...(last !== undefined && { after: last }),
              });
              if (next === undefined) break;
              walked.push(next);
            }
            expect(walked).toEqual(order === 'newest' ? all : all.toReversed());
          }
        }
      });

      test('have the labels that were given last, and none once they are erased', async () => {
        await apply(
          described('session_1', { b: '9' }),
          described('session_1', { c: '1' }),
          described('session_2', {}),
          record('session-session_3', sessionErased()),
        );
        expect(await list({ labels: [['a', '1']] })).toEqual([]);
        expect(await list({ labels: [['b', '9']] })).toEqual([]);
        expect(await list({ labels: [['c', '1']] })).toEqual(['session_1']);
        const { findSession } = fixture.readModels;
        expect(await findSession('session_1')).toMatchObject({
          title: 'title of session_1',
          labels: { c: '1' },
        });
        expect(await findSession('session_3')).toMatchObject({ title: null, labels: {} });
      });

      test('do not get back what they had when earlier events are delivered again', async () => {
        const earlier = described('session_4', { a: '1' });
        await apply(earlier, described('session_4', { z: '1' }));
        await apply(earlier);
        expect(await list({ labels: [['a', '1']] })).not.toContain('session_4');
        expect(await list({ labels: [['z', '1']] })).toEqual(['session_4']);
      });
    });

    test('gives a transcript turn by turn, with tool calls, tokens and errors as they were recorded', async () => {
      const failed = turnFailed(2, { message: 'No.' });
      const events = [
        turnStarted(1),
        toolCalled(1),
        turnCompleted(1, { tool_used: 'calculator' }),
        turnStarted(2),
        failed,
        turnStarted(3),
      ];
      await apply(
        startSession('session_1'),
        ...events.map((event) => record('session-session_1', event)),
      );
      const {
        turns: { rows: turns },
      } = (await fixture.readModels.findTranscript('acct_1', 'session_1', ALL))!;
      expect(turns.map(({ turn, status }) => [turn, status])).toEqual([
        [1, 'completed'],
        [2, 'failed'],
        [3, 'running'],
      ]);
      expect(turns[0]).toEqual({
        session_id: 'session_1',
        turn: 1,
        status: 'completed',
        input: 'question 1',
        agent_revision: 0,
        output: 'answer 1',
        model: 'gpt-4o-2026',
        tool_used: 'calculator',
        offered: ['calculator'],
        reasoning: null,
        tool_calls: [
          {
            round: 1,
            call_id: 'call_1',
            tool: 'calculator',
            arguments: '{"expression":"12*34"}',
            result: '408',
            is_error: false,
            duration_ms: 3,
          },
        ],
        tokens: { prompt: 9, completion: 3, total: 12 },
        finish_reason: 'stop',
        error: null,
        context: null,
        started_at: at(1),
        ended_at: at(3),
        key_id: 'key_1',
        end_position: positionOf(4),
        owner: 'instance-1',
        deadline: at(600),
        revision: 3,
      });
      expect(turns[1]?.error).toEqual({ code: 'model_error', message: 'No.' });
      const session = await fixture.readModels.findSession('session_1');
      expect(
        await fixture.readModels.findTranscript('acct_1', 'session_1', {
          ...ALL,
          limit: 1,
          after: 1,
        }),
      ).toEqual({
        session,
        turns: { rows: [turns[1]], more: true },
      });
      expect(
        await fixture.readModels.findTranscript('acct_1', 'session_1', { ...ALL, after: 3 }),
      ).toEqual({
        session,
        turns: { rows: [], more: false },
      });
      expect(await fixture.readModels.findTranscript('acct_1', 'session_9', ALL)).toBeUndefined();
      expect(await fixture.readModels.findTranscript('acct_2', 'session_1', ALL)).toBeUndefined();
    });

    test('never shows a session of one moment with turns of another', async () => {
      const last = 60;
      await apply(startSession('session_1'));
      async function write(): Promise<void> {
        for (let turn = 1; turn <= last; turn += 1) {
          await apply(record('session-session_1', turnStarted(turn)));
          await apply(record('session-session_1', turnCompleted(turn)));
        }
      }
      async function read(): Promise<void> {
        for (;;) {
          const {
            session,
            turns: { rows: turns },
          } = (await fixture.readModels.findTranscript('acct_1', 'session_1', ALL))!;
          expect([session.turns, session.status]).toEqual([
            turns.length,
            turns.at(-1)?.status === 'running' ? 'running' : 'idle',
          ]);
          if (session.turns === last && session.status === 'idle') return;
          await setImmediate();
        }
      }
      await Promise.all([write(), read(), read()]);
    });

    test('lists the turns whose end is not recorded', async () => {
      await apply(
        startSession('session_1'),
        record('session-session_1', turnStarted(1)),
        startSession('session_2', 'agent_1', 'acct_2'),
        record('session-session_2', turnStarted(1), 'acct_2'),
      );
      expect(await fixture.readModels.listOpenTurns()).toEqual([
        {
          session_id: 'session_1',
          account_id: 'acct_1',
          turn: 1,
          owner: 'instance-1',
          deadline: at(600),
        },
        {
          session_id: 'session_2',
          account_id: 'acct_2',
          turn: 1,
          owner: 'instance-1',
          deadline: at(600),
        },
      ]);
      await apply(record('session-session_1', turnCompleted(1)));
      expect((await fixture.readModels.listOpenTurns()).map((row) => row.session_id)).toEqual([
        'session_2',
      ]);
    });
  });

  describe(`${name}: pages that end at a number of bytes`, () => {
    const KIB = 1_024;
    const texts = ['é'.repeat(5 * KIB), 'x'.repeat(100 * KIB), 'y', 'z'.repeat(9 * KIB)];

    /** The pages' keys, each page begun after the last key of the one before. */
    async function pages<Row, Key>(
      keyOf: (row: Row) => Key,
      read: (after: Key | undefined) => Promise<{ rows: Row[]; more: boolean }>,
    ): Promise<Key[][]> {
      const found: Key[][] = [];
      for (let more = true; more && found.length < 20;) {
        const page = await read(found.at(-1)?.at(-1));
        found.push(page.rows.map(keyOf));
        more = page.more;
      }
      return found;
    }
    const from = <Key>(after: Key | undefined) => (after === undefined ? {} : { after });

    test('of agents hold what fits, a larger one alone, and say whether more follows', async () => {
      await apply(
        ...texts.map((instruction, index) =>
          createAgent(`agent_${index + 1}`, 'acct_1', { instruction }),
        ),
        createAgent('agent_9', 'acct_2'),
      );
      const byBytes = (bytes: number, limit = 10) =>
        pages(
          (row) => row.agent_id,
          (after: string | undefined) =>
            fixture.readModels.listAgents('acct_1', { limit, bytes, ...from(after) }),
        );
      const all = ['agent_1', 'agent_2', 'agent_3', 'agent_4'];
      expect(await byBytes(ALL.bytes)).toEqual([all]);
      expect(await byBytes(1)).toEqual(all.map((id) => [id]));
      // In bytes, not in characters: what comes first has two bytes to each.
      expect(await byBytes(12 * KIB)).toEqual([['agent_1'], ['agent_2'], ['agent_3', 'agent_4']]);
      expect(await byBytes(112 * KIB)).toEqual([['agent_1', 'agent_2', 'agent_3'], ['agent_4']]);
      expect(await byBytes(112 * KIB, 2)).toEqual([all.slice(0, 2), all.slice(2)]);
    });

    test('of sessions go on with the next older one', async () => {
      await apply(...['1', '2', '3'].map((id) => startSession(`session_${id}`)));
      expect(
        await pages(
          (row) => row.session_id,
          (after: string | undefined) =>
            fixture.readModels.listSessions('acct_1', { limit: 9, bytes: 1, ...from(after) }),
        ),
      ).toEqual([['session_3'], ['session_2'], ['session_1']]);
    });

    test('of turns count tool calls as well', async () => {
      const turns = texts.flatMap((result, index) => [
        turnStarted(index + 1),
        toolCalled(index + 1, { result }),
        turnCompleted(index + 1),
      ]);
      await apply(
        startSession('session_1'),
        ...turns.map((event) => record('session-session_1', event)),
      );
      expect(
        await pages(
          (row) => row.turn,
          async (after: number | undefined) =>
            (await fixture.readModels.findTranscript('acct_1', 'session_1', {
              limit: 9,
              bytes: 14 * KIB,
              ...from(after),
            }))!.turns,
        ),
      ).toEqual([[1], [2], [3, 4]]);
    });
  });

  describe(`${name}: applying`, () => {
    test('resumes from the checkpoint of the last batch, also after a restart', async () => {
      expect(await fixture.store.checkpoint()).toBeUndefined();
      await apply(openAccount('acct_1'), createAgent('agent_1'));
      expect(await fixture.store.checkpoint()).toEqual(reached(positionOf(2)).checkpoint);
      expect(await fixture.store.apply([], reached(positionOf(7)))).toEqual([]);
      fixture = await fixture.reopen();
      expect(await fixture.store.checkpoint()).toEqual(reached(positionOf(7)).checkpoint);
      fixture.announce(positionOf(7), true);
      expect(await fixture.readModels.findAgent('agent_1')).toBeDefined();
    });

    test('keeps the last event as its checkpoint where others have written to the log behind it', async () => {
      const others = { position: positionOf(3), checkpoint: undefined };
      await fixture.store.apply([], others);
      expect(await fixture.store.checkpoint()).toBeUndefined();
      await apply(createAgent('agent_1'));
      const { checkpoint } = reached(positionOf(1));
      for (const position of [positionOf(9), positionOf(5)]) {
        await fixture.store.apply([], { position, checkpoint });
        expect(await fixture.store.checkpoint()).toEqual(checkpoint);
        fixture.announce(position, true);
        expect(await fixture.readModels.untilShown(position, 5_000)).toBe(true);
      }
      // A log from which others' records are gone ends before where it ended. Who answers queries may
      // hear of it a moment later.
      await eventually(
        () => fixture.readModels.untilShown(positionOf(9), 50),
        (shown) => !shown,
      );
    });

    test('refuses a checkpoint that no log can have, with all that comes with it', async () => {
      await apply(createAgent('agent_1'));
      const refused = fixture.store.apply(
        [createAgent('agent_2')],
        reached('18446744073709551615/18446744073709551615' as Position),
      );
      await expect(refused).rejects.toMatchObject({ code: 'position_invalid', retriable: false });
      expect(await fixture.store.checkpoint()).toEqual(reached(positionOf(1)).checkpoint);
      expect(await ids('acct_1')).toEqual(['agent_1']);
    });

    test('changes nothing when an older batch comes again, its checkpoint included', async () => {
      const first = [
        startSession('session_1'),
        record('session-session_1', turnStarted(1)),
        record('session-session_1', toolCalled(1)),
      ];
      await apply(...first);
      await apply(record('session-session_1', turnCompleted(1)));
      const before = await fixture.readModels.findTranscript('acct_1', 'session_1', ALL);
      expect(await apply(...first)).toEqual([]);
      expect(await fixture.readModels.findTranscript('acct_1', 'session_1', ALL)).toEqual(before);
      expect(await fixture.store.checkpoint()).toEqual(reached(positionOf(4)).checkpoint);
    });

    test('parks the stream of an event that cannot follow, keeps it parked after a restart, and goes on with the others', async () => {
      const parked = {
        stream: 'session-session_1',
        revision: 1,
        event_type: 'session.turn_completed.v1',
        error: 'there is no turn that this event could follow',
      };
      expect(
        await apply(
          startSession('session_1'),
          record('session-session_1', turnCompleted(1)),
          createAgent('agent_1'),
        ),
      ).toEqual([parked]);
      fixture = await fixture.reopen();
      expect(
        await apply(record('session-session_1', turnStarted(1)), createAgent('agent_2')),
      ).toEqual([]);
      expect(await fixture.readModels.listParkedStreams(9)).toEqual({
        count: 1,
        streams: [parked],
      });
      expect(await fixture.readModels.findSession('session_1')).toMatchObject({
        status: 'idle',
        turns: 0,
        revision: 0,
      });
      expect(await agentsOf(fixture.readModels)).toHaveLength(2);
    });

    test('lists the first parked streams, and counts them all', async () => {
      const misfits = ['3', '1', '2'].flatMap((id) => [
        startSession(`session_${id}`),
        record(`session-session_${id}`, turnCompleted(1)),
      ]);
      await apply(...misfits);
      expect(await fixture.readModels.listParkedStreams(2)).toMatchObject({
        count: 3,
        streams: [{ stream: 'session-session_1' }, { stream: 'session-session_2' }],
      });
    });

    test('parks only the stream whose row the database refuses, and applies the rest of the batch', async () => {
      // The number fits the event's schema, but no integer column.
      const refused = turnStarted(1e300);
      const events = [
        startSession('session_1'),
        record('session-session_1', refused),
        startSession('session_2'),
        record('session-session_1', turnStarted(2)),
        record('session-session_2', turnStarted(1)),
      ];
      expect(await apply(...events)).toMatchObject([
        { stream: 'session-session_1', revision: 1, event_type: 'session.turn_started.v1' },
      ]);
      expect(await fixture.readModels.listParkedStreams(9)).toMatchObject({ count: 1 });
      expect(await fixture.readModels.findSession('session_1')).toMatchObject({
        status: 'idle',
        turns: 0,
        revision: 0,
      });
      expect(await fixture.readModels.findSession('session_2')).toMatchObject({
        status: 'running',
        turns: 1,
      });
      expect(await fixture.store.checkpoint()).toEqual(reached(positionOf(5)).checkpoint);
    });

    test('gives the rows of one delivery for any valid history, in batches of any size and with any part delivered again', async () => {
      let run = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.nat().chain(() => {
            run += 1;
            const prefix = `run${run}_`;
            return randomHistory(prefix, run * 1000).chain((events) =>
              fc.tuple(fc.constant(prefix), fc.constant(events), deliveries(events)),
            );
          }),
          async ([prefix, events, batches]) => {
            const once = rowMaps();
            fold(planBatch(events), once, new Set());
            for (const batch of batches) expect(await apply(...batch)).toEqual([]);
            const { readModels } = fixture;
            const account = `${prefix}acct`;
            expect(await readModels.findAccount(account)).toEqual(once.accounts.get(account));
            expect((await readModels.listApiKeys(account, ALL)).rows).toEqual(byId(once.api_keys));
            expect(await agentsOf(readModels, account)).toEqual(
              byId(once.agents).filter(({ deleted }) => !deleted),
            );
            const { rows: sessions } = await readModels.listSessions(account, ALL);
            expect(sessions.toReversed()).toEqual(
              byId(once.sessions).filter(({ status }) => status !== 'erased'),
            );
            for (const value of ['1', '2']) {
              const labelled = await readModels.listSessions(account, {
                ...ALL,
                labels: [['a', value]],
                order: 'oldest',
              });
              expect(labelled.rows).toEqual(
                byId(once.sessions).filter(({ labels }) => labels['a'] === value),
              );
            }
            const transcripts = await Promise.all(
              byId(once.sessions).map(({ account_id, session_id }) =>
                readModels.findTranscript(account_id, session_id, ALL),
              ),
            );
            expect(transcripts.flatMap((transcript) => transcript!.turns.rows)).toEqual(
              byId(once.turns),
            );
          },
        ),
        { numRuns: size({ small: 12, full: 25 }), endOnFailure: true },
      );
    });
  });

  describe(`${name}: being up to date`, () => {
    const soon = 20_000;

    test('rejects every query with store_unavailable until it has been caught up once', async () => {
      await fixture.store.apply([createAgent('agent_1')], reached(positionOf(1)));
      expect(await fixture.readModels.findAgent('agent_1').catch(unavailable)).toBe(true);
      fixture.announce(positionOf(1), false);
      expect(await fixture.readModels.findAgent('agent_1').catch(unavailable)).toBe(true);
      fixture.announce(positionOf(1), true);
      expect(await fixture.readModels.findAgent('agent_1')).toBeDefined();
      fixture.announce(positionOf(1), false);
      expect(await fixture.readModels.findAgent('agent_1')).toBeDefined();
    });

    test('resolves a wait at once when the position has passed', async () => {
      await apply(createAgent('agent_1'), createAgent('agent_2'));
      expect(await fixture.readModels.untilShown(positionOf(1), 0)).toBe(true);
      expect(await fixture.readModels.untilShown(positionOf(2), 0)).toBe(true);
    });

    test('resolves a wait false when its time is over, and the waits behind it when their position passes', async () => {
      await apply(createAgent('agent_1'));
      const patient = fixture.readModels.untilShown(positionOf(2), soon);
      expect(await fixture.readModels.untilShown(positionOf(2), 5)).toBe(false);
      await apply(createAgent('agent_2'));
      expect(await patient).toBe(true);
    });

    test('wakes thousands of waits, each when its position passes and none before', async () => {
      const places = Array.from({ length: 3000 }, (_, index) => ((index * 7919) % 3000) + 1);
      const woken: number[] = [];
      const waits = places.map(async (place) => {
        expect(await fixture.readModels.untilShown(positionOf(place), soon)).toBe(true);
        woken.push(place);
      });
      await fixture.store.apply([], reached(positionOf(1500)));
      fixture.announce(positionOf(1500), true);
      await Promise.all(waits.filter((_, index) => (places[index] ?? 0) <= 1500));
      expect([woken.length, Math.max(...woken)]).toEqual([1500, 1500]);
      await fixture.store.apply([], reached(positionOf(3000)));
      fixture.announce(positionOf(3000), true);
      await Promise.all(waits);
      expect(woken).toHaveLength(3000);
    });

    test('ends the waits and rejects the queries when it is closed, and the store too', async () => {
      await apply(createAgent('agent_1'));
      const wait = fixture.readModels.untilShown(positionOf(9), soon);
      await fixture.close();
      expect(await wait).toBe(false);
      await expect(fixture.readModels.findAgent('agent_1')).rejects.toMatchObject({
        code: 'store_unavailable',
      });
      await expect(
        fixture.store.apply([createAgent('agent_2')], reached(positionOf(2))),
      ).rejects.toMatchObject({ code: 'store_unavailable' });
      await expect(fixture.store.checkpoint()).rejects.toMatchObject({ code: 'store_unavailable' });
    });
  });
}
