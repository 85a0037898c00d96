/** What is sent, compared with what the contract describes. */
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { toMessage } from '../../../../infra/kafka/producerSession.ts';
import { jsonSchemas } from '../../../support/contract/jsonSchemas.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import type { DataSchema } from '../../../support/contract/evolution.ts';
import { publicEventSchemas } from '../../../../shared/publicEvents/publicEvent.ts';
import { EVERY_EVENT, sessionStarted } from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';

/** The schema, with nothing allowed anywhere that it does not name. */
function closed(schema: DataSchema): DataSchema {
  const each = (schemas: Record<string, DataSchema>): Record<string, DataSchema> =>
    Object.fromEntries(Object.entries(schemas).map(([name, part]) => [name, closed(part)]));
  const { properties, items, $defs } = schema;
  return {
    ...schema,
    ...(properties && { properties: each(properties), additionalProperties: false }),
    ...(items && { items: closed(items) }),
    ...($defs && { $defs: each($defs) }),
  };
}

/** What is wrong with a value; empty when the schema names all of it. */
function mistakes(name: string, value: unknown): string[] {
  const validator = new Ajv2020({ strict: true, allErrors: true });
  validator.validate(closed(jsonSchemas()[name]!), value);
  return (validator.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  );
}

const messages = Object.values(EVERY_EVENT).flatMap((event) => {
  const [kind = ''] = event.type.split('.');
  const { record } = recordHistory();
  return toPublicEvents([record({ stream: `${kind}-${kind}_1` }, event)]);
});

describe('a message', () => {
  test('is there of every public type', () => {
    expect(messages.map(({ type }) => type).toSorted()).toEqual(
      publicEventSchemas.map(({ type }) => type).toSorted(),
    );
  });

  test.each(messages)('of $type has exactly the headers that are described', (event) => {
    const { headers, key } = toMessage(event, '/turnlog');
    expect(mistakes('headers', headers)).toEqual([]);
    expect(headers).toMatchObject({
      ce_id: event.id,
      ce_type: event.type,
      ce_source: '/turnlog',
      ce_subject: key,
      ce_partitionkey: key,
      ce_accountid: event.account_id,
      ce_position: event.position,
    });
  });

  test.each(messages)('of $type has exactly the data that is described', (event) => {
    const { value } = toMessage(event, '/turnlog');
    expect(mistakes(event.type, JSON.parse(value))).toEqual([]);
  });

  test('tells where its session was forked from as it is described', () => {
    const forked = sessionStarted('agent_1');
    const stored = recordHistory().record(
      { stream: 'session-session_1' },
      { ...forked, data: { ...forked.data, forked_from: { session_id: 'session_0', turn: 2 } } },
    );
    const [event] = toPublicEvents([stored]);
    const data = JSON.parse(toMessage(event!, '/turnlog').value) as object;
    expect(data).toHaveProperty('forked_from', { session_id: 'session_0', turn: 2 });
    expect(mistakes(event!.type, data)).toEqual([]);
  });

  test('with a header too many, one too few or a field too many is noticed', () => {
    const { headers } = toMessage(messages[0]!, '/turnlog');
    const { ce_accountid: _, ...fewer } = headers as Record<string, string>;
    expect(mistakes('headers', { ...headers, ce_more: '1' })).toHaveLength(1);
    expect(mistakes('headers', fewer)).toHaveLength(1);
    const completed = messages.find(({ type }) => type.endsWith('turn_completed.v1'))!;
    const data = structuredClone(completed.data) as { tokens: Record<string, number> };
    data.tokens['cached'] = 1;
    expect(mistakes(completed.type, data)).toHaveLength(1);
  });
});
