import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { breakingChanges } from '../../../support/contract/evolution.ts';
import {
  publicEventSchemas,
  type PublicEvent,
} from '../../../../shared/publicEvents/publicEvent.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import { eventSchemas } from '../../../../shared/eventlog/eventTypes.ts';
import { EVERY_EVENT } from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';

/** A stream that an event of this type may stand in. */
const streamOf = (type: string): string => {
  const [kind = ''] = type.split('.');
  return `${kind}-${kind}_1`;
};

function publish(...types: DomainEvent['type'][]): PublicEvent[] {
  const { record } = recordHistory();
  return toPublicEvents(
    types.map((type) => record({ stream: streamOf(type), account: 'acct_7' }, EVERY_EVENT[type])),
  );
}

describe('the public view of events', () => {
  const relayed = eventSchemas
    .map((schema) => schema.properties.type.const)
    .filter((type) => !/^(?:account|log|replay|request|retention|webhook)\./.test(type));

  test.each(relayed)('%s is published as its schema says', (type) => {
    const [event] = publish(type);
    const schema = publicEventSchemas.find((candidate) => candidate.type === event?.type);
    const strict = new Ajv2020({ strict: false, allErrors: true });
    // Nothing may go out that the schema does not name.
    expect(strict.validate({ ...schema?.data, additionalProperties: false }, event?.data)).toBe(
      true,
    );
    expect(event).toMatchObject({
      type: `turnlog.${type}`,
      channel: `${type.split('.')[0]}s`,
      account_id: 'acct_7',
      revision: 0,
      correlation_id: 'request',
    });
  });

  test('every public type is the view of some event', () => {
    expect(
      publish(...relayed)
        .map(({ type }) => type)
        .toSorted(),
    ).toEqual(publicEventSchemas.map(({ type }) => type).toSorted());
  });

  test('events of accounts and of the log stay inside, and so does what a client gave to make its request safe to repeat', () => {
    const inside = eventSchemas.map((schema) => schema.properties.type.const);
    expect(publish(...inside.filter((type) => !relayed.includes(type)))).toEqual([]);
    expect(JSON.stringify(publish(...relayed))).not.toMatch(/a-client-s-secret|instance-1|"hash"/);
  });

  test('events of one session have its id as key and keep their revisions', () => {
    expect(
      publish('session.started.v1', 'session.turn_started.v1').map(({ key, revision, data }) => [
        key,
        revision,
        (data as { session_id: string }).session_id,
      ]),
    ).toEqual([
      ['session_1', 0, 'session_1'],
      ['session_1', 1, 'session_1'],
    ]);
  });

  test('everything that one request led to has one trace id, and every event a span of its own', () => {
    const parts = publish('session.started.v1', 'session.turn_started.v1').map(({ traceparent }) =>
      traceparent.split('-'),
    );
    expect(parts[0]?.[1]).toMatch(/^[0-9a-f]{32}$/);
    expect(parts[0]?.[1]).toBe(parts[1]?.[1]);
    expect(parts[0]?.[2]).not.toBe(parts[1]?.[2]);
  });

  test('a type of a newer release is refused, so that the newer release publishes it', () => {
    const { record } = recordHistory();
    const dreamt = record({ stream: 'session-session_1' }, { type: 'session.dreamt.v1', data: {} });
    expect(() => toPublicEvents([dreamt])).toThrow(
      `does not know the type session.dreamt.v1 of the event ${dreamt.id}`,
    );
  });

  test('what others write into streams that are named like ours is left out', () => {
    const { record } = recordHistory();
    const stream = 'session-session_1';
    const written = record({ stream }, { type: 'session.dreamt.v1', data: {} });
    const others = [
      { ...written, metadata: '{}' },
      record({ stream }, { type: 'Dreamt', data: {} }),
    ];
    expect(toPublicEvents(others)).toEqual([]);
  });

  test('an event that can not be understood is named, not left out', () => {
    const stored = recordHistory().record(
      { stream: 'agent-agent_1' },
      { type: 'agent.created.v1', data: { name: 5 } },
    );
    expect(() => toPublicEvents([stored])).toThrow(
      `the event ${stored.id} (agent-agent_1 revision 0`,
    );
  });
});

describe('what counts as additive', () => {
  const before = {
    type: 'object',
    required: ['a'],
    properties: {
      a: { type: 'string' },
      b: { type: 'array', items: { type: 'integer', minimum: 0 } },
    },
  };
  const changed = (change: Record<string, unknown>) =>
    breakingChanges(before, { ...before, ...change });

  test('a new field, a field that is always there now, and other remarks are additive', () => {
    expect(
      changed({
        required: ['a', 'b', 'c'],
        description: 'Better said',
        properties: { ...before.properties, c: { type: 'string' } },
      }),
    ).toEqual([]);
  });

  test.each([
    ['a field that is gone', { properties: { b: before.properties.b } }, ['/a is gone']],
    ['a field that may be missing', { required: [] }, ['/a may be missing now']],
    [
      'another type',
      { properties: { ...before.properties, a: { type: 'number' } } },
      ['/a allows other values than before'],
    ],
    [
      'other items',
      { properties: { ...before.properties, b: { type: 'array', items: { type: 'string' } } } },
      ['/b/* allows other values than before'],
    ],
    [
      'items that are no longer described',
      { properties: { ...before.properties, b: { type: 'array' } } },
      ['/b/* allows other items than before'],
    ],
  ])('%s is not', (_, change, expected) => {
    expect(changed(change)).toEqual(expected);
  });
});
