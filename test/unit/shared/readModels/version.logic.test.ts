import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { eventSchemas } from '../../../../shared/eventlog/eventTypes.ts';
import {
  currentRecord,
  differences,
  type ProjectionRecord,
} from '../../../support/builders/projectionRecord.ts';

const NOTHING = { raiseProjectionLogicFor: [], runNpmRunProjectionsFor: [] };
const now = currentRecord();
const STATUS = 'session.turn_failed.v1 turns/id_1/1 status';

const withStatus = (status: string, logic = now.logic) =>
  differences(now, { ...now, logic, values: { ...now.values, [STATUS]: status } });

test('the projections make the rows that were recorded, of every event type that makes any', async () => {
  const file = new URL('../../../fixtures/projections.json', import.meta.url);
  const recorded = JSON.parse(await readFile(file, 'utf8')) as ProjectionRecord;
  expect(differences(recorded, now)).toEqual(NOTHING);
  const types = new Set(Object.keys(now.values).map((place) => place.split(' ')[0]));
  const all = eventSchemas.map((schema) => schema.properties.type.const);
  // What is declared of the log as a whole, an account's audit, requests, and what retention records
  // are in no read model.
  const unshown = [
    'log.restore_accepted.v1',
    'log.tree_declared.v1',
    'log.tree_replaced.v1',
    'account.audited.v1',
    'request.begun.v1',
    'retention.time_kept.v1',
    'retention.time_confirmed.v1',
    'retention.erasures_confirmed.v1',
  ];
  expect(types).toEqual(new Set(all.filter((type) => !unshown.includes(type))));
});

test('another value of the same event asks for another logic number', () => {
  expect(now.values[STATUS]).toBe('"failed"');
  expect(withStatus('"broken"')).toEqual({
    ...NOTHING,
    raiseProjectionLogicFor: [STATUS],
  });
});

test('a row that the same events do not make any more asks for another logic number', () => {
  const { [STATUS]: _gone, ...values } = now.values;
  expect(differences(now, { ...now, values })).toEqual({
    ...NOTHING,
    raiseProjectionLogicFor: [STATUS],
  });
});

test('another value under another logic number is to be recorded', () => {
  expect(withStatus('"broken"', now.logic + 1)).toEqual({
    ...NOTHING,
    runNpmRunProjectionsFor: ['PROJECTION_LOGIC', STATUS],
  });
});

test('a column or an event type that is new is to be recorded, and needs no other logic number', () => {
  const added = ['session.started.v1 sessions/id_1 mood', 'session.dreamt.v1 sessions/id_1 status'];
  const values = { ...now.values, ...Object.fromEntries(added.map((place) => [place, 'new'])) };
  const events = { ...now.events, 'session.dreamt.v1': 'hash' };
  expect(differences(now, { ...now, events, values })).toEqual({
    ...NOTHING,
    runNpmRunProjectionsFor: added,
  });
});
