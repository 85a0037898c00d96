import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  damageFromError,
  streamDamagedError,
  type StreamFlaw,
} from '../../../../../shared/eventlog/reading/streamDamage.ts';
import {
  checkPage,
  decodeReadableEvents,
  type DecodedEvent,
} from '../../../../../shared/eventlog/reading/wholeStream.ts';
import type { ReadOptions, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  agentData,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

const SESSION = { stream: 'session-session_1' };

/** A session of that many turns, three events each after the first. */
function history(turns: number): StoredEvent[] {
  const { record } = recordHistory();
  const later = Array.from({ length: turns }, (_, index) => [
    turnStarted(index + 1),
    toolCalled(index + 1),
    turnCompleted(index + 1),
  ]);
  return [sessionStarted('agent_1'), ...later.flat()].map((event) => record(SESSION, event));
}

/** What a store answers that holds these events. */
function pageOf(
  events: readonly StoredEvent[],
  { direction, from, limit }: ReadOptions,
): StoredEvent[] {
  const inRange = events.filter(({ revision }) =>
    direction === 'forwards' ? revision >= (from ?? 0) : revision <= (from ?? Infinity),
  );
  return (direction === 'forwards' ? inRange : inRange.toReversed()).slice(0, limit);
}

function check(events: readonly StoredEvent[], options: ReadOptions): DecodedEvent[] | StreamFlaw {
  const placed = checkPage({ ...options, events: pageOf(events, options) });
  return 'reason' in placed ? placed : decodeReadableEvents(placed);
}
const flawOf = (events: readonly StoredEvent[], options: ReadOptions): StreamFlaw | undefined => {
  const checked = check(events, options);
  return Array.isArray(checked) ? undefined : checked;
};

const ALL: ReadOptions[] = [
  { direction: 'forwards', limit: 100 },
  { direction: 'backwards', limit: 100 },
];
const foreign = (at: StoredEvent): StoredEvent => ({ ...at, type: 'order.paid', data: '{}' });

describe.each(ALL)('a stream read $direction', (all) => {
  test('is whole from revision 0 on, and given oldest first', () => {
    const checked = check(history(2), all) as DecodedEvent[];
    expect(checked.map(({ recorded }) => recorded.revision)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test('is whole when there is nothing of it', () => expect(check([], all)).toEqual([]));

  test('that begins later says where', () =>
    expect(flawOf(history(2).slice(5), all)).toEqual({
      reason: 'it begins at revision 5',
      revision: 0,
    }));

  test('with a hole names the revision that is missing', () =>
    expect(flawOf(history(2).toSpliced(3, 1), all)).toEqual({
      reason: 'revision 3 is missing',
      revision: 3,
    }));

  test.each([
    [
      'an event of another kind',
      foreign,
      /revision 2 is of the type "order.paid", which does not belong there/,
    ],
    [
      'one of ours that belongs elsewhere',
      (at: StoredEvent) => ({
        ...at,
        type: 'agent.created.v1',
        data: JSON.stringify(agentData()),
      }),
      /"agent.created.v1", which does not belong there/,
    ],
    [
      'a second beginning',
      (at: StoredEvent) => ({ ...at, type: 'session.started.v1', data: '{"agent_id":"agent_2"}' }),
      /revision 2 is of the type session.started.v1/,
    ],
    [
      'data that is not JSON',
      (at: StoredEvent) => ({ ...at, data: '{' }),
      /content of the event at revision 2/,
    ],
    [
      'data that does not fit',
      (at: StoredEvent) => ({ ...at, data: '{"turn":"my secret"}' }),
      /content of the event at revision 2/,
    ],
    [
      'metadata that does not fit',
      (at: StoredEvent) => ({ ...at, metadata: '{}' }),
      /metadata of the event at revision 2/,
    ],
  ])('with %s names its revision, and quotes nothing of its content', (_what, damage, reason) => {
    const events = history(2);
    const flaw = flawOf(events.with(2, damage(events[2]!)), all);
    expect(flaw).toEqual({ reason: expect.stringMatching(reason), revision: 2 });
    expect(flaw!.reason).not.toContain('secret');
  });
});

describe('an event of the stream’s kind, of a type that this release does not know,', () => {
  const { record } = recordHistory();
  const started = record(SESSION, sessionStarted('agent_1'));
  const rated = record(SESSION, { type: 'session.turn_rated.v1', data: { stars: 5 } });

  test('is of a newer release where its hash is right: the stream is no damaged one', () => {
    expect(flawOf([started, rated], ALL[0]!)).toEqual({
      reason:
        'the event at revision 1 is of the type "session.turn_rated.v1", which a newer release has written',
      revision: 1,
      newer: true,
    });
  });

  test.each([
    ['its hash', { data: '{"stars":1}' }],
    ['its kind', { type: 'agent.rated.v1' }],
  ])('is none of Turnlog’s where %s is wrong', (_what, change) => {
    const flaw = flawOf([started, { ...rated, ...change }], ALL[0]!);
    expect(flaw).toEqual({ reason: expect.stringContaining('does not belong'), revision: 1 });
  });
});

test('a page from a revision on begins there, and a page backwards that ends early has met the beginning', () => {
  expect(flawOf(history(2), { direction: 'forwards', from: 3, limit: 2 })).toBeUndefined();
  expect(flawOf(history(2), { direction: 'forwards', from: 50, limit: 2 })).toBeUndefined();
  expect(flawOf(history(2), { direction: 'backwards', from: 4, limit: 2 })).toBeUndefined();
  expect(flawOf(history(2).slice(4), { direction: 'forwards', from: 2, limit: 2 })).toEqual({
    reason: 'revision 2 is missing',
    revision: 2,
  });
  expect(flawOf(history(2).slice(4), { direction: 'backwards', from: 3, limit: 2 })).toEqual({
    reason: 'it begins at revision 4',
    revision: 0,
  });
});

test('the error names the stream, what was found of it, and where the client named it', () => {
  const damage = {
    stream: 'session-session_1',
    reason: 'it begins at revision 5',
    revision: 0,
    first_revision: 5,
    last_revision: 6,
  };
  const error = streamDamagedError(damage, '/session_id');
  const message =
    'The stream session-session_1 is damaged: it begins at revision 5; revisions 5 to 6 were found.';
  expect(error).toMatchObject({
    code: 'stream_damaged',
    retriable: false,
    message,
    details: { stream: { message, path: '/session_id' } },
  });
  expect(damageFromError(error)).toEqual(damage);
  expect(
    streamDamagedError({ ...damage, first_revision: null, last_revision: null }).message,
  ).toContain('no event of it was found');
});

const turns = fc.integer({ min: 1, max: 12 });
/** A reader that follows a stream in pages until it has met its end. */
function flawInPages(
  events: readonly StoredEvent[],
  direction: ReadOptions['direction'],
  limit: number,
): StreamFlaw | undefined {
  let from: number | undefined;
  for (;;) {
    const checked = check(events, { direction, limit, ...(from !== undefined && { from }) });
    if (!Array.isArray(checked)) return checked;
    const next =
      direction === 'forwards'
        ? (checked.at(-1)?.recorded.revision ?? 0) + 1
        : (checked[0]?.recorded.revision ?? 0) - 1;
    if (checked.length < limit || next < 0) return undefined;
    from = next;
  }
}
const reading = fc.record({
  direction: fc.constantFrom<ReadOptions['direction']>('forwards', 'backwards'),
  limit: fc.integer({ min: 1, max: 20 }),
});

test('any beginning of a stream is whole, in pages of any size and direction', () => {
  fc.assert(
    fc.property(turns, fc.nat(), reading, (count, cut, { direction, limit }) => {
      const events = history(count);
      expect(
        flawInPages(events.slice(0, 1 + (cut % events.length)), direction, limit),
      ).toBeUndefined();
    }),
  );
});

test('any event that is taken out before the last, and any that is foreign, is found at its revision', () => {
  fc.assert(
    fc.property(
      turns,
      fc.nat(),
      fc.boolean(),
      reading,
      (count, pick, removed, { direction, limit }) => {
        const events = history(count);
        const at = pick % (removed ? events.length - 1 : events.length);
        const damaged = removed ? events.toSpliced(at, 1) : events.with(at, foreign(events[at]!));
        expect(flawInPages(damaged, direction, limit)?.revision).toBe(at);
      },
    ),
  );
});
