import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonSchemas } from '../../../support/contract/jsonSchemas.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import { decryptTextsInData } from '../../../../shared/eventlog/encryption/openTexts.ts';
import { commitEventTexts } from '../../../../shared/eventlog/encryption/sealTexts.ts';
import type { PublicEvent } from '../../../../shared/publicEvents/publicEvent.ts';
import {
  agentCreated,
  EVERY_EVENT,
  sessionErased,
  turnFailed,
} from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';

const PARAMETERS = {
  temperature: 0.5,
  response_format: {
    type: 'json_schema' as const,
    json_schema: { name: 'answer', schema: '{"type":"object"}' },
  },
};

/** An event as it is published with its texts, and again when they were erased. */
async function publishTwice(event: DomainEvent) {
  const [kind = ''] = event.type.split('.');
  const { open, keys, kept } = memoryKeys();
  const { events, key } = await commitEventTexts(keys, undefined, [{ id: 'e', ...event }]);
  const stream = `${kind}-${kind}_1`;
  const stored = recordHistory().record({ stream }, events[0]!);
  const publish = async (): Promise<PublicEvent> =>
    toPublicEvents(await decryptTextsInData(open(), [stored]))[0]!;
  const before = await publish();
  if (key) kept.set(key.id, 'destroyed');
  return { before, after: await publish(), stored };
}

const TEXTS: [DomainEvent['type'], string[]][] = [
  ['agent.created.v1', ['/instruction', '/name']],
  ['agent.updated.v1', ['/instruction', '/name']],
  ['agent.deleted.v1', ['/instruction', '/name']],
  ['session.turn_started.v1', ['/input']],
  ['session.tool_called.v1', ['/arguments', '/call_id', '/result', '/tool']],
  ['session.turn_completed.v1', ['/calls/0/request_sha256', '/calls/0/response_id', '/output']],
  ['session.turn_failed.v1', ['/calls/0/request_sha256', '/calls/0/response_id', '/message']],
];

describe('an event whose texts were erased', () => {
  test.each(TEXTS)('of type %s has empty texts and their commitments', async (type, pointers) => {
    const { before, after, stored } = await publishTwice(EVERY_EVENT[type]);
    expect(before.data).not.toHaveProperty('erased');
    expect(before.data).not.toHaveProperty('commitments');
    const { erased, commitments, ...data } = after.data as unknown as {
      erased: unknown;
      commitments: Record<string, string>;
    };
    expect(erased).toBe(true);
    expect(Object.keys(commitments).toSorted()).toEqual(pointers);
    for (const sha256 of Object.values(commitments)) expect(stored.data).toContain(sha256);
    // All else is as it was, and every field that was promised is there.
    const cleared = structuredClone(before.data) as unknown as Record<string, unknown>;
    for (const pointer of pointers) {
      const names = pointer.split('/').slice(1);
      const last = names.pop()!;
      const holder = names.reduce((value, name) => value[name] as Record<string, unknown>, cleared);
      expect(holder[last]).not.toBe('');
      holder[last] = '';
    }
    expect(data).toEqual(cleared);
    const validator = new Ajv2020({ strict: true, allErrors: true });
    expect(validator.validate(jsonSchemas()[after.type]!, after.data)).toBe(true);
  });

  test('has an empty schema of its answers, too', async () => {
    const { before, after } = await publishTwice(agentCreated({ parameters: PARAMETERS }));
    expect(before.data).toMatchObject({ parameters: PARAMETERS });
    expect(after.data).toMatchObject({
      parameters: { ...PARAMETERS, response_format: { json_schema: { name: '', schema: '' } } },
    });
    const failed = await publishTwice(turnFailed(1, { output: 'no JSON' }));
    expect([failed.before.data, failed.after.data]).toMatchObject([
      { output: 'no JSON' },
      { output: '' },
    ]);
  });

  test('without texts is as it was', async () => {
    const { before, after } = await publishTwice(EVERY_EVENT['session.turn_interrupted.v1']);
    expect(after).toEqual(before);
  });
});

test('a text whose key was lost is not published as an erased one, and nothing is past it', async () => {
  const { open, keys, kept } = memoryKeys();
  const { record } = recordHistory();
  const started = EVERY_EVENT['session.turn_started.v1'];
  const { events, key } = await commitEventTexts(keys, undefined, [{ id: 'e', ...started }]);
  const stored = [
    record({ stream: 'session-session_1' }, events[0]!),
    record({ stream: 'session-session_1' }, EVERY_EVENT['session.turn_interrupted.v1']),
  ];
  kept.delete(key!.id);
  const readable = await decryptTextsInData(open(), stored);
  expect(() => toPublicEvents(readable)).toThrow(expect.objectContaining({ code: 'key_missing' }));
  expect(() => toPublicEvents(readable)).toThrow(key!.id);
});

test('that a session was erased is published with its reason, and nothing that an operator noted', async () => {
  const noted = sessionErased({ reason: 'retention', note: 'a-note', key_ids: ['k'.repeat(16)] });
  const { before } = await publishTwice(noted);
  expect(before).toMatchObject({ type: 'turnlog.session.erased.v1', key: 'session_1' });
  expect(before.data).toEqual({ session_id: 'session_1', reason: 'retention' });
});
