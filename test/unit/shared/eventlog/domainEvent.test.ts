import { expect, test } from '@jest/globals';
import { toDomainEvent } from '../../../../shared/eventlog/domainEvent.ts';
import type { RecordedEvent } from '../../../../shared/eventlog/event.ts';

const recorded = (type: string, data: unknown): RecordedEvent => ({ type, data }) as RecordedEvent;

test('an event of a known type is the domain event that was recorded', () => {
  expect(toDomainEvent(recorded('account.opened.v1', { name: 'x' }))).toEqual({
    type: 'account.opened.v1',
    data: { name: 'x' },
  });
});

test.each(['agent.painted.v1', '__proto__', 'constructor'])(
  'an event of the unknown type %s is nothing to the domain',
  (type) => {
    const data = { type: 'account.opened.v1', data: { name: 'x' } };
    expect(toDomainEvent(recorded(type, data))).toBeUndefined();
  },
);

test('an event whose data does not fit its schema is refused with the place that does not', () => {
  expect(() =>
    toDomainEvent(recorded('session.turn_interrupted.v1', { turn: '1', reason: 'crash' })),
  ).toThrow('/data/turn must be integer');
});

test('an older shape is carried up through every version until the current one', () => {
  const upcasters = new Map<string, (data: any) => { type: string; data: unknown }>([
    ['account.opened.v-1', ({ t }) => ({ type: 'account.opened.v0', data: { title: t } })],
    ['account.opened.v0', ({ title }) => ({ type: 'account.opened.v1', data: { name: title } })],
  ]);
  expect(toDomainEvent(recorded('account.opened.v-1', { t: 'x' }), upcasters)).toEqual({
    type: 'account.opened.v1',
    data: { name: 'x' },
  });
});
