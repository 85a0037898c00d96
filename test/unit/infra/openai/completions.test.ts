import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { OpenAI } from 'openai';
import { Agent } from 'undici';
import { requestCompletion } from '../../../../infra/openai/completions.ts';
import { openProvider } from '../../../../infra/openai/openProvider.ts';
import { createMemoryLedger } from '../../../../shared/lib/memory/ledger.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../../../support/fakes/scriptedModel.ts';

const ANSWER = { choices: [{ message: { content: 'from the library' } }] };
const JSON_TYPE = { 'content-type': 'application/json' };

let server: ScriptedModel;
let agent: Agent;
beforeEach(async () => {
  agent = new Agent();
  server = await startScriptedModel({ text: 'from the server' });
});
afterEach(async () => {
  await agent.destroy();
  await server.close();
});

/** Requests a completion of a server that does as scripted, and counts what the library gets. */
async function request(step: Step, onDelta?: (text: string) => void) {
  server.use(step);
  const client = new OpenAI({ baseURL: server.baseUrl, apiKey: 'k' });
  let posts = 0;
  client.request = (() => {
    posts += 1;
    return Promise.resolve(ANSWER);
  }) as unknown as typeof client.request;
  const connection = { agent, ledger: createMemoryLedger() };
  const limits = { attemptTimeoutMs: 30_000, maxRetries: 0 };
  const provider = openProvider({ id: 'p', base_url: server.baseUrl }, limits, connection);
  const { content } = await requestCompletion(
    { ...provider, client: () => Promise.resolve(client) },
    { model: 'm', messages: [] },
    { account_id: 'a', signal: new AbortController().signal, ...(onDelta && { onDelta }) },
    true,
  );
  return { content, posts };
}

describe('an answer', () => {
  test('does not pass through the library', async () => {
    expect(await request({ text: 'Hi' })).toEqual({ content: 'Hi', posts: 0 });
  });

  test('of a stream does not either', async () => {
    const deltas: string[] = [];
    const outcome = await request({ text: 'Hi' }, (text) => void deltas.push(text));
    expect({ outcome, deltas }).toEqual({ outcome: { content: 'Hi', posts: 0 }, deltas: ['Hi'] });
  });

  test.each([
    'application/json; charset=utf-8',
    ' Application/JSON',
    'application/vnd.provider+json;v=1',
  ])('may have the media type %s', async (type) => {
    const body = JSON.stringify({ choices: [{ message: { content: 'Hi' } }] });
    const step = { status: 200, headers: { 'content-type': type }, body };
    expect(await request(step)).toEqual({ content: 'Hi', posts: 0 });
  });
});

test.each<[string, Step]>([
  ['a refusal', { status: 429, body: {} }],
  ['a failure', { status: 500, body: {} }],
  ['a reset connection', { fault: 'reset_before_answer' }],
  ['an answer that breaks off', { fault: 'reset_in_body' }],
  ['no content', { status: 204 }],
  ['an empty answer', { status: 200, headers: JSON_TYPE, body: '' }],
  ['a page', { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>' }],
])('the library judges %s', async (_, step) => {
  expect(await request(step)).toEqual({ content: 'from the library', posts: 1 });
});
