import { describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { fold, listRowPlaces, rowMaps, type RowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import { labelToken } from '../../../../shared/sessions/labelToken.ts';
import { percentOf } from '../../../../shared/projections/progress.ts';
import {
  accountErased,
  accountOpened,
  agentCreated,
  agentDeleted,
  agentErased,
  agentUpdated,
  accountAudited,
  at,
  holdSet,
  keyIssued,
  keyRevoked,
  keyRotated,
  limitsSet,
  retentionSet,
  sessionDescribed,
  sessionErased,
  sessionRow,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
  requestBegun,
} from '../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../support/builders/history.ts';

const AGENT = { stream: 'agent-agent_1' };
const ACCOUNT = { stream: 'account-acct_1' };
const SESSION = { stream: 'session-session_1' };

function rowsAfter(events: readonly StoredEvent[]) {
  const rows = rowMaps();
  const { parked } = fold(planBatch(events), rows, new Set());
  return { rows, parked };
}

/** The rows after events of one stream, recorded at second 0, 1, 2, … */
function given(
  recording: { stream: string },
  ...events: (DomainEvent | { type: string; data: object })[]
): { rows: RowMaps; parked: { revision: number; event_type: string; error: string }[] } {
  const { record } = recordHistory();
  return rowsAfter(events.map((event) => record(recording, event)));
}

const opened: DomainEvent = accountOpened('Acme');
const issued: DomainEvent = keyIssued('key_1', { expires_at: at(90) });
const created: DomainEvent = agentCreated({ tool: 'clock' });

describe('accounts and API keys', () => {
  test('account.opened makes the account with the id that its stream carries', () => {
    expect(given(ACCOUNT, opened).rows.accounts.get('acct_1')).toEqual({
      account_id: 'acct_1',
      name: 'Acme',
      opened_at: at(0),
      limits: {},
      retention: {},
      hold: { held: false },
      erased: false,
      revision: 0,
    });
  });

  test('account.limits_set sets all limits of the account', () => {
    const limits = (...sets: object[]) =>
      given(ACCOUNT, opened, ...sets.map(limitsSet)).rows.accounts.get('acct_1');
    expect(limits({ runs: 2 })).toMatchObject({ limits: { runs: 2 }, revision: 1 });
    expect(limits({ runs: 2 }, { prompt_bytes: 9 })?.limits).toEqual({ prompt_bytes: 9 });
  });

  test('account.retention_set and account.hold_set say how long and whether all is kept', () => {
    const { rows } = given(
      ACCOUNT,
      opened,
      retentionSet({ minimum_days: 1, maximum_days: 2 }),
      retentionSet({ maximum_days: 3 }),
      holdSet({ held: true, reason: 'Case 12' }),
    );
    expect(rows.accounts.get('acct_1')).toMatchObject({
      retention: { maximum_days: 3 },
      hold: { held: true, reason: 'Case 12' },
      revision: 3,
    });
  });

  test('account.audited changes nothing, in the stream of its own that it belongs in alone', () => {
    const { rows, parked } = given({ stream: 'audit-acct_1' }, accountAudited());
    expect([...rows.accounts]).toEqual([]);
    expect(parked).toEqual([]);
    const misplaced = given(ACCOUNT, opened, accountAudited());
    expect(misplaced.parked).toMatchObject([{ revision: 1 }]);
  });

  test('request.begun changes nothing, parks nothing, and belongs in a stream of its own alone', () => {
    const { rows, parked } = given({ stream: 'request-ab12' }, requestBegun());
    expect([...rows.agents, ...rows.sessions, ...parked]).toEqual([]);
    const misplaced = given(ACCOUNT, opened, requestBegun());
    expect(misplaced.parked).toMatchObject([{ revision: 1 }]);
  });

  test('account.key_issued makes the key, not revoked, and carries the account on', () => {
    const { rows } = given(ACCOUNT, opened, issued);
    expect(rows.api_keys.get('key_1')).toEqual({
      key_id: 'key_1',
      account_id: 'acct_1',
      name: 'name of key_1',
      hash: 'ab'.repeat(32),
      scopes: ['agents:read', 'agents:run'],
      issued_at: at(1),
      issued_by: 'key_1',
      expires_at: at(90),
      replaced_by: null,
      revoked_at: null,
      revoked_by: null,
      revision: 1,
    });
    expect(rows.accounts.get('acct_1')?.revision).toBe(1);
  });

  test('account.key_revoked dates the revocation and keeps the rest of the key', () => {
    const { rows } = given(ACCOUNT, opened, issued, keyRevoked('key_1'));
    expect(rows.api_keys.get('key_1')).toMatchObject({
      issued_at: at(1),
      expires_at: at(90),
      revoked_at: at(2),
      revoked_by: 'key_1',
      revision: 2,
    });
  });

  test('account.key_rotated names the key that replaces it, and its new end', () => {
    const { rows } = given(ACCOUNT, opened, issued, keyRotated('key_1', 'key_2', at(30)));
    expect(rows.api_keys.get('key_1')).toMatchObject({
      expires_at: at(30),
      replaced_by: 'key_2',
      revoked_at: null,
      revision: 2,
    });
    expect(rows.accounts.get('acct_1')?.revision).toBe(2);
  });

  test('a key of an account that was never opened parks the stream and leaves no key behind', () => {
    const { rows, parked } = given(ACCOUNT, issued);
    expect(parked).toEqual([
      {
        stream: 'account-acct_1',
        revision: 0,
        event_type: 'account.key_issued.v1',
        error: 'there is no account that this event could follow',
      },
    ]);
    expect(rows.api_keys.size).toBe(0);
  });

  test('an event that fails in its second row leaves its first row alone', () => {
    const { rows, parked } = given(ACCOUNT, opened, issued, issued);
    expect(parked).toMatchObject([{ revision: 2, error: 'the API key exists already' }]);
    expect(rows.accounts.get('acct_1')?.revision).toBe(1);
  });
});

describe('agents', () => {
  test('agent.created makes the agent for the account of the metadata', () => {
    expect(given(AGENT, created).rows.agents.get('agent_1')).toEqual({
      agent_id: 'agent_1',
      account_id: 'acct_1',
      name: 'Researcher',
      instruction: 'Answer briefly.',
      model: 'gpt-4o',
      tool: 'clock',
      component: 'Chat',
      compaction: false,
      parameters: null,
      created_at: at(0),
      updated_at: at(0),
      deleted: false,
      erased: false,
      position: positionOf(1),
      revision: 0,
    });
  });

  test('agent.updated replaces the whole configuration, a tool that is gone included', () => {
    const { rows } = given(AGENT, created, agentUpdated({ name: 'Poet', component: 'Form' }));
    expect(rows.agents.get('agent_1')).toMatchObject({
      name: 'Poet',
      component: 'Form',
      tool: null,
      created_at: at(0),
      updated_at: at(1),
      position: positionOf(2),
      revision: 1,
    });
  });

  test('agent.deleted keeps the row and marks it', () => {
    const { rows } = given(AGENT, created, agentDeleted({ tool: 'clock' }));
    expect(rows.agents.get('agent_1')).toMatchObject({
      deleted: true,
      updated_at: at(1),
      position: positionOf(2),
    });
  });

  test('a change of an agent that was never created parks the stream', () => {
    expect(given(AGENT, agentUpdated()).parked).toHaveLength(1);
  });
});

describe('sessions and turns', () => {
  test('session.started makes an idle session without turns', () => {
    expect(given(SESSION, sessionStarted('agent_1')).rows.sessions.get('session_1')).toEqual(
      sessionRow(),
    );
  });

  test('session.turn_started opens a turn and makes the session running', () => {
    const { rows } = given(SESSION, sessionStarted('agent_1'), turnStarted(1));
    expect(rows.sessions.get('session_1')).toMatchObject({
      status: 'running',
      turns: 1,
      updated_at: at(1),
      revision: 1,
    });
    expect(rows.turns.get('session_1/1')).toEqual({
      session_id: 'session_1',
      turn: 1,
      status: 'running',
      input: 'question 1',
      agent_revision: 0,
      output: null,
      model: 'gpt-4o',
      tool_used: '',
      offered: ['calculator'],
      reasoning: null,
      tool_calls: [],
      tokens: null,
      finish_reason: null,
      error: null,
      context: null,
      started_at: at(1),
      ended_at: null,
      key_id: 'key_1',
      end_position: null,
      owner: 'instance-1',
      deadline: at(600),
      revision: 1,
    });
  });

  test('session.tool_called adds the call to the open turn, in order', () => {
    const { rows } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      toolCalled(1),
      toolCalled(1, { call_id: 'call_2', round: 2, tool: 'clock' }),
    );
    const turn = rows.turns.get('session_1/1');
    expect(turn).toMatchObject({
      status: 'running',
      tool_used: 'calculator',
      ended_at: null,
      revision: 3,
    });
    expect(turn?.tool_calls.map(({ call_id, round }) => [call_id, round])).toEqual([
      ['call_1', 1],
      ['call_2', 2],
    ]);
    expect(turn?.tool_calls[0]).not.toHaveProperty('turn');
    expect(rows.sessions.get('session_1')).toMatchObject({
      status: 'running',
      updated_at: at(3),
      revision: 3,
    });
  });

  test('session.tool_called of a function that the agent does not have is no tool used', () => {
    const { rows } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      toolCalled(1, { tool: 'no_such_function', is_error: true }),
    );
    expect(rows.turns.get('session_1/1')).toMatchObject({ tool_used: '' });
  });

  test('session.turn_completed records the answer, how it ended and the model that gave it', () => {
    const { rows } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      turnCompleted(1, { tool_used: 'calculator', finish_reason: 'length' }),
    );
    expect(rows.turns.get('session_1/1')).toMatchObject({
      status: 'completed',
      finish_reason: 'length',
      output: 'answer 1',
      model: 'gpt-4o-2026',
      tool_used: 'calculator',
      tokens: { prompt: 9, completion: 3, total: 12 },
      error: null,
      ended_at: at(2),
      revision: 2,
    });
    expect(rows.sessions.get('session_1')).toMatchObject({ status: 'idle', turns: 1 });
  });

  test('session.turn_failed records why', () => {
    const { rows } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      turnFailed(1, { code: 'model_timeout', message: 'Too slow.' }),
    );
    expect(rows.turns.get('session_1/1')).toMatchObject({
      status: 'failed',
      output: null,
      tokens: null,
      error: { code: 'model_timeout', message: 'Too slow.' },
      ended_at: at(2),
    });
  });

  test('session.turn_failed keeps an answer that was not what was asked for', () => {
    const failed = turnFailed(1, { code: 'model_error', output: 'no JSON' });
    const { rows } = given(SESSION, sessionStarted('agent_1'), turnStarted(1), failed);
    expect(rows.turns.get('session_1/1')).toMatchObject({ status: 'failed', output: 'no JSON' });
  });

  test('session.turn_interrupted gives the reason as the code', () => {
    const { rows } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      turnInterrupted(1),
      turnStarted(2),
    );
    expect(rows.turns.get('session_1/1')).toMatchObject({
      status: 'interrupted',
      error: { code: 'crash', message: 'The service stopped while the turn was running.' },
    });
    expect(rows.turns.get('session_1/2')?.status).toBe('running');
    expect(rows.sessions.get('session_1')).toMatchObject({ status: 'running', turns: 2 });
  });

  test('a second end of one turn parks the stream and leaves the first end', () => {
    const { rows, parked } = given(
      SESSION,
      sessionStarted('agent_1'),
      turnStarted(1),
      turnCompleted(1),
      turnInterrupted(1),
    );
    expect(parked).toMatchObject([{ revision: 3, error: 'turn 1 has ended already' }]);
    expect(rows.turns.get('session_1/1')?.status).toBe('completed');
  });
});

describe('an erasure', () => {
  const SECRET = 'a text of somebody';
  const talked = [sessionStarted('agent_1'), turnStarted(1, { input: SECRET }), turnCompleted(1)];

  test('of a session leaves its row, without turns and texts, and is noted', () => {
    const { rows, parked } = given(SESSION, ...talked, sessionErased());
    expect(parked).toEqual([]);
    expect(rows.sessions.get('session_1')).toEqual(
      sessionRow({ status: 'erased', turns: 1, updated_at: at(3), revision: 3 }),
    );
    expect(rows.turns.size).toBe(0);
    expect(rows.erasures.get('session-session_1')).toEqual({
      stream: 'session-session_1',
      account_id: 'acct_1',
      key_ids: ['k'.repeat(16)],
      position: positionOf(4),
      revision: 3,
    });
    expect(JSON.stringify([...rows.sessions.values()])).not.toContain(SECRET);
  });

  test('of a session leaves the turns of others', () => {
    const { record } = recordHistory();
    const other = { stream: 'session-session_2' };
    const { rows } = rowsAfter([
      ...talked.map((event) => record(SESSION, event)),
      ...talked.map((event) => record(other, event)),
      record(SESSION, sessionErased()),
    ]);
    expect([...rows.turns.keys()]).toEqual(['session_2/1']);
  });

  test('brings nothing back when events before it are delivered again', () => {
    const { record } = recordHistory();
    const events = [...talked, sessionErased()].map((event) => record(SESSION, event));
    const rows = rowMaps();
    for (const batch of [events, events.slice(0, 3), events]) {
      const { dirty, removals } = fold(planBatch(batch), rows, new Set());
      if (batch !== events) expect([dirty.turns.size, removals]).toEqual([0, []]);
    }
    expect(rows.turns.size).toBe(0);
  });

  test('of an agent takes its name and instruction, and leaves what is no text', () => {
    const parameters = { temperature: 1 };
    const withParameters = agentUpdated({ parameters });
    expect(given(AGENT, created, withParameters).rows.agents.get('agent_1')).toMatchObject({
      parameters,
    });
    const { rows } = given(AGENT, created, withParameters, agentErased());
    expect(rows.agents.get('agent_1')).toMatchObject({
      parameters: null,
      name: '',
      instruction: '',
      model: 'gpt-4o',
      deleted: true,
      erased: true,
      position: positionOf(3),
      revision: 2,
    });
  });

  test('of an account takes its name and its keys, and no other account’s', () => {
    const { record } = recordHistory();
    const other = { stream: 'account-acct_2' };
    const { rows } = rowsAfter([
      ...[opened, issued].map((event) => record(ACCOUNT, event)),
      ...[opened, keyIssued('key_2')].map((event) => record(other, event)),
      record(ACCOUNT, accountErased()),
    ]);
    expect(rows.accounts.get('acct_1')).toMatchObject({ name: '', erased: true, revision: 2 });
    expect([...rows.api_keys.keys()]).toEqual(['key_2']);
  });

  test('follows a parked stream, whatever is missing there, and the stream is parked no more', () => {
    const { record } = recordHistory();
    const events = [...talked, turnStarted(2), sessionErased()].map((event) =>
      record(SESSION, event),
    );
    const kept = [events[0]!, events[1]!, events[3]!, events[4]!];
    const rows = rowMaps();
    const together = fold(planBatch(kept), rows, new Set());
    expect(together).toMatchObject({ parked: [], erased: ['session-session_1'] });
    expect(rows.sessions.get('session_1')?.status).toBe('erased');
    const before = fold(planBatch([events[4]!]), rowMaps(), new Set(['session-session_1']));
    expect(before).toMatchObject({
      parked: [],
      erased: ['session-session_1'],
      removals: [
        { table: 'turns', owner: 'session_1' },
        { table: 'session_labels', owner: 'session_1' },
        { table: 'turn_words', owner: 'session_1' },
      ],
    });
  });
});

describe('session.described', () => {
  const labelsIn = (rows: RowMaps) =>
    [...rows.session_labels.values()].map(({ session_id, token, account_id }) => [
      session_id,
      token,
      account_id,
    ]);

  test('says all that the session is called, and by what it is found', () => {
    const { rows, parked } = given(
      SESSION,
      sessionStarted(),
      sessionDescribed({ a: '1', b: '2' }, 'First'),
      turnStarted(1),
      turnCompleted(1),
      sessionDescribed({ b: '2', c: '3' }),
    );
    expect(parked).toEqual([]);
    expect(rows.sessions.get('session_1')).toMatchObject({
      title: null,
      labels: { b: '2', c: '3' },
      turns: 1,
      status: 'idle',
      updated_at: at(4),
      revision: 4,
    });
    const token = (name: string, value: string) => labelToken('acct_1', name, value);
    expect(labelsIn(rows)).toEqual([
      ['session_1', token('b', '2'), 'acct_1'],
      ['session_1', token('c', '3'), 'acct_1'],
    ]);
  });

  test('writes only the labels that differ, and loads none', () => {
    const { record } = recordHistory();
    const labels = { a: '1', b: '2', constructor: '3' };
    const rows = rowMaps();
    const apply = (...events: DomainEvent[]) => {
      const plan = planBatch(events.map((event) => record(SESSION, event)));
      const { dirty, gone, removals, parked } = fold(plan, rows, new Set());
      expect([removals, parked]).toEqual([[], []]);
      expect(listRowPlaces(plan).filter(({ table }) => table === 'session_labels')).toEqual([]);
      return { written: [...dirty.session_labels.keys()], gone: gone.map(({ id }) => id) };
    };
    const id = (name: string, value: string) => `session_1/${labelToken('acct_1', name, value)}`;
    const [a, b, c] = [id('a', '1'), id('b', '2'), id('constructor', '3')];
    expect(apply(sessionStarted(), sessionDescribed(labels))).toEqual({
      written: [a, b, c],
      gone: [],
    });
    expect(apply(sessionDescribed(labels, 'A title'))).toEqual({ written: [], gone: [] });
    expect(apply(sessionDescribed({ ...labels, b: '3' }))).toEqual({
      written: [id('b', '3')],
      gone: [b],
    });
    expect(apply(sessionDescribed({ b: '3' }), sessionDescribed({ a: '1', b: '3' }))).toEqual({
      written: [a],
      gone: [a, c],
    });
    expect([...rows.session_labels].map(([place, row]) => [place, row.revision])).toEqual([
      [id('b', '3'), 3],
      [a, 5],
    ]);
  });

  test('is gone with the session, and says nothing where its texts are erased already', () => {
    const erased = { type: 'session.described.v1', data: sessionDescribed({ '': '' }, '').data };
    const { rows, parked } = given(
      SESSION,
      sessionStarted(),
      sessionDescribed({ a: '1' }, 'First'),
      erased,
      sessionErased(),
    );
    expect(parked).toEqual([]);
    expect(rows.sessions.get('session_1')).toMatchObject({ title: null, labels: {} });
    expect(labelsIn(rows)).toEqual([]);
  });

  test('has tokens that differ between accounts, names and values', () => {
    const tokens = [
      labelToken('acct_1', 'a', '1'),
      labelToken('acct_2', 'a', '1'),
      labelToken('acct_1', 'a', '2'),
      labelToken('acct_1', 'a","1', ''),
      labelToken('acct_1', 'a:', '1'),
    ];
    expect(new Set(tokens).size).toBe(tokens.length);
    for (const token of tokens) expect(token).toMatch(/^[\w-]{43}$/);
  });
});

describe('a batch', () => {
  test('only counts an event of a type that this version does not know', () => {
    const { rows, parked } = given(SESSION, {
      type: 'session.painted.v7',
      data: { colour: 'red' },
    });
    expect(parked).toEqual([]);
    const { storage, ...others } = rows;
    expect(Object.values(others).filter(({ size }) => size > 0)).toEqual([]);
    expect(storage.get('acct_1/')).toMatchObject({ events: 1 });
  });

  test('goes on after an event of a type that this version does not know', () => {
    const { rows, parked } = given(
      SESSION,
      sessionStarted('agent_1'),
      { type: 'session.painted.v7', data: {} },
      turnStarted(1),
    );
    expect(parked).toEqual([]);
    expect(rows.sessions.get('session_1')).toMatchObject({ turns: 1, revision: 2 });
  });

  test('leaves the row before an event of another application, whose place the next one takes', () => {
    const { record } = recordHistory();
    const started = record(SESSION, sessionStarted('agent_1'));
    const turn = record(SESSION, turnStarted(1));
    const foreign = { ...turn, type: 'order.paid', data: '{}', metadata: '{}' };
    const before = rowsAfter([started, foreign]);
    expect(before.parked).toEqual([]);
    expect(before.rows.sessions.get('session_1')).toMatchObject({ turns: 0, revision: 0 });
    const { rows } = rowsAfter([started, foreign, turn]);
    expect(rows.sessions.get('session_1')).toMatchObject({ turns: 1, revision: 1 });
  });

  test.each([
    ['misses an event', [0, 1, 3], { revision: 3, error: 'revision 2 of the stream is missing' }],
    [
      'misses an event before one of an unknown type',
      [0, 1, 4, 5],
      { revision: 5, error: 'revision 2 of the stream is missing' },
    ],
    ['misses its beginning', [1, 2], { revision: 1, error: 'the stream begins at revision 1' }],
  ])('parks a stream that %s, and leaves its rows as they were', (_what, kept, parking) => {
    const { record } = recordHistory();
    const painted = { type: 'session.painted.v7', data: {} };
    const events = [
      sessionStarted('agent_1'),
      turnStarted(1),
      toolCalled(1),
      turnCompleted(1),
      painted,
      turnStarted(2),
    ].map((event) => record(SESSION, event));
    const { rows, parked } = rowsAfter(kept.map((index) => events[index]!));
    expect(parked).toEqual([expect.objectContaining(parking)]);
    expect(rows.sessions.get('session_1')?.revision).toBe(kept[0] === 0 ? 1 : undefined);
  });

  test('parks a stream with an event that belongs into one of another kind', () => {
    expect(given(SESSION, created)).toMatchObject({
      parked: [{ revision: 0, error: 'its type does not belong in this stream' }],
    });
  });

  test.each([
    ['data that does not fit the schema', { data: '{"turn":"one"}' }],
    ['data that is not JSON', { data: '{' }],
    ['metadata without an account', { metadata: '{}' }],
  ])(
    'parks the stream of an event with %s, skips its later events and goes on with other streams',
    (_, damage) => {
      const { record } = recordHistory();
      const events = [
        record(SESSION, sessionStarted('agent_1')),
        { ...record(SESSION, turnStarted(1)), ...damage },
        record(SESSION, turnStarted(1)),
        record({ stream: 'session-session_2' }, sessionStarted('agent_1')),
      ];
      const { rows, parked } = rowsAfter(events);
      expect(parked).toMatchObject([
        { stream: 'session-session_1', revision: 1, event_type: 'session.turn_started.v1' },
      ]);
      expect(rows.turns.size).toBe(0);
      expect(
        [...rows.sessions.values()].map(({ session_id, revision }) => [session_id, revision]),
      ).toEqual([
        ['session_1', 0],
        ['session_2', 0],
      ]);
    },
  );

  test('skips the streams that were parked before', () => {
    const { record } = recordHistory();
    const rows = rowMaps();
    const { dirty, parked } = fold(
      planBatch([record(AGENT, created)]),
      rows,
      new Set(['agent-agent_1']),
    );
    expect([dirty.agents.size, parked]).toEqual([0, []]);
  });

  test('writes a row once, however many of its events changed it, and names each row to load once', () => {
    const { record } = recordHistory();
    const plan = planBatch(
      [
        sessionStarted('agent_1'),
        turnStarted(1),
        toolCalled(1),
        turnCompleted(1),
        turnStarted(2),
      ].map((event) => record(SESSION, event)),
    );
    expect(listRowPlaces(plan).map(({ table, key }) => [table, ...key])).toEqual([
      ['sessions', 'session_1'],
      ['storage', 'acct_1', '2026-01-01'],
      ['storage', 'acct_1', ''],
      ['turns', 'session_1', 1],
      ['erasures', 'account-acct_1'],
      ['turns', 'session_1', 2],
    ]);
    const { dirty } = fold(plan, rowMaps(), new Set());
    expect([dirty.sessions.size, dirty.turns.size]).toEqual([1, 2]);
  });

  test('that was applied before leaves nothing to write', () => {
    const { record } = recordHistory();
    const plan = planBatch(
      [sessionStarted('agent_1'), turnStarted(1), toolCalled(1)].map((event) =>
        record(SESSION, event),
      ),
    );
    const rows = rowMaps();
    fold(plan, rows, new Set());
    const { dirty, parked } = fold(plan, rows, new Set());
    expect([dirty.sessions.size, dirty.turns.size, dirty.storage.size]).toEqual([0, 0, 0]);
    expect(parked).toEqual([]);
  });
});

test('the estimate of progress goes from 0 to 100 between the beginning and the head of the log', () => {
  expect([
    percentOf(undefined, positionOf(200)),
    percentOf(positionOf(50), positionOf(200)),
    percentOf(positionOf(200), positionOf(200)),
    percentOf(undefined, undefined),
  ]).toEqual([0, 25, 100, 100]);
});
