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

test('an event of an unknown type is nothing to the domain', () => {
  expect(toDomainEvent(recorded('agent.painted.v1', {}))).toBeUndefined();
});

test('an event whose data does not fit its schema is refused with the place that does not', () => {
  expect(() =>
    toDomainEvent(recorded('session.turn_interrupted.v1', { turn: '1', reason: 'crash' })),
  ).toThrow('/data/turn must be integer');
});

test('an older shape is carried up through every version until the current one', () => {
  const upcasters = {
    'account.opened.v-1': (data: unknown) => ({
      type: 'account.opened.v0',
      data: { title: (data as { t: string }).t },
    }),
    'account.opened.v0': (data: unknown) => ({
      type: 'account.opened.v1',
      data: { name: (data as { title: string }).title },
    }),
  };
  expect(toDomainEvent(recorded('account.opened.v-1', { t: 'x' }), upcasters)).toEqual({
    type: 'account.opened.v1',
    data: { name: 'x' },
  });
});
