import { expect, test } from '@jest/globals';
import { eventSchemas } from '../../../../shared/eventlog/eventTypes.ts';
import { classifyAppend } from '../../../../shared/storage/appendPurpose.ts';

const typed = (type: string, data = '{}') => ({ type, data });

test('quotas refuse what clients begin, and never what ends or erases it', () => {
  const refusable = eventSchemas
    .map(({ properties }) => properties.type.const)
    .filter((type) => classifyAppend([typed(type)]) !== 'always');
  expect(refusable).toEqual([
    'account.key_issued.v1',
    'account.key_rotated.v1',
    'agent.created.v1',
    'agent.updated.v1',
    'account.audited.v1',
    'request.begun.v1',
    'session.started.v1',
    'session.turn_started.v1',
    'session.described.v1',
    'webhook.created.v1',
    'webhook.changed.v1',
    'webhook.enabled.v1',
    'replay.started.v1',
  ]);
});

test('an append with one event of a client is the client’s', () => {
  expect(
    classifyAppend([typed('session.turn_completed.v1'), typed('session.turn_started.v1')]),
  ).toBe('client');
});

test('a type that no feature lists is a client’s', () => {
  expect(classifyAppend([typed('dream.dreamt.v1')])).toBe('client');
});

test('entries of the audit have their own quota', () => {
  expect(classifyAppend([typed('account.audited.v1')])).toBe('audit');
});

test('a request that cancels or erases is told from one that creates', () => {
  const begun = (operation: string) => typed('request.begun.v1', JSON.stringify({ operation }));
  expect(classifyAppend([begun('cancelTurn')])).toBe('cancel');
  expect(classifyAppend([begun('eraseAgent')])).toBe('cancel');
  expect(classifyAppend([begun('createAgent')])).toBe('client');
});
