import { readFileSync } from 'node:fs';
import { Parser } from '@asyncapi/parser';
import { expect, test } from '@jest/globals';
import {
  committedSchemas,
  CONTRACT_FOLDER,
  contractViolations,
  generatedContract,
} from '../../../services/relay/contract/files.ts';
import { jsonSchemas } from '../../../services/relay/contract/jsonSchemas.ts';
import { publicEventSchemas } from '../../../shared/publicEvents/publicEvent.ts';

/** Of diagnostics; the rest are remarks. */
const ERROR = 0;

const committed = (file: string): string => readFileSync(new URL(file, CONTRACT_FOLDER), 'utf8');

test.each(Object.entries(generatedContract()))(
  'the committed %s is what the code publishes by (otherwise: npm run contract)',
  (file, text) => {
    expect(committed(file)).toBe(text);
  },
);

test('a committed type takes nothing from its consumers', () => {
  expect(contractViolations(committedSchemas())).toEqual([]);
});

test('a type that is removed, and one that loses a field, are violations', () => {
  const { 'turnlog.agent.created.v1': gone, ...rest } = jsonSchemas();
  const started = rest['turnlog.session.started.v1']!;
  const current = {
    ...rest,
    'turnlog.session.started.v1': { ...started, properties: { session_id: { type: 'string' } } },
  };
  expect(gone).toBeDefined();
  expect(contractViolations(committedSchemas(), current)).toEqual([
    'turnlog.agent.created.v1 is gone',
    'turnlog.session.started.v1: /agent_id is gone',
    'turnlog.session.started.v1: /forked_from is gone',
  ]);
});

test('asyncapi.yaml is valid AsyncAPI 3.0 and describes every type on its topic', async () => {
  const { document, diagnostics } = await new Parser().parse(committed('asyncapi.yaml'));
  const severities: Array<{ severity: number; message: string; path: Array<string | number> }> =
    diagnostics;
  expect(
    severities
      .filter(({ severity }) => severity === ERROR)
      .map(({ message, path }) => `${path.join('.')}: ${message}`),
  ).toEqual([]);
  expect(document?.version()).toBe('3.0.0');
  const byTopic = Object.fromEntries(
    document!
      .channels()
      .all()
      .map((channel) => [
        channel.address(),
        channel
          .messages()
          .all()
          .map((message) => message.id())
          .toSorted(),
      ]),
  );
  const of = (channel: string): string[] =>
    publicEventSchemas
      .filter((schema) => schema.channel === channel)
      .map(({ type }) => type)
      .toSorted();
  expect(byTopic).toEqual({
    'turnlog.agents.v1': of('agents'),
    'turnlog.sessions.v1': of('sessions'),
  });
});
