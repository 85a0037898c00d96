// A client that `openapi-typescript` made, used as a program of somebody else would. Every failure
// and every event is told apart by its type: a compiler says where one is forgotten.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

const [baseUrl = '', key = ''] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { 'x-api-key': key } });

/** Texts of before they were protected stand as they were recorded. */
function textOf(
  text: components['schemas']['DisclosedText'] | components['schemas']['ErasedText'] | string,
): string {
  if (typeof text === 'string') return text;
  return 'text' in text ? text.text : '';
}

function told(event: components['schemas']['SessionEvent']): string {
  switch (event.type) {
    case 'session.started.v1':
      return event.data.agent_id;
    case 'session.turn_started.v1':
      return textOf(event.data.input);
    case 'session.tool_called.v1':
      return textOf(event.data.result);
    case 'session.turn_completed.v1':
      return textOf(event.data.output);
    case 'session.turn_failed.v1':
      return textOf(event.data.message);
    case 'session.compacted.v1':
      return textOf(event.data.summary);
    case 'session.described.v1':
      return event.data.labels.map(({ value }) => textOf(value)).join();
    case 'session.turn_interrupted.v1':
    case 'session.erased.v1':
      return event.data.reason;
    default:
      return event satisfies never;
  }
}

async function nameOf(agentId: string): Promise<string> {
  const { data, error } = await client.GET('/v1/agents/{agentId}', {
    params: { path: { agentId } },
  });
  if (data) return data.data.name;
  if (!error) return 'as before';
  switch (error.code) {
    case 'agent_not_found':
      return `${error.status satisfies 404} ${error.error}`;
    case 'agent_erased':
      return `${error.status satisfies 410} ${error.error}`;
    case 'unauthorized':
    case 'forbidden':
      return 'another key';
    case 'rate_limited':
    case 'overloaded':
    case 'store_unavailable':
    case 'read_model_damaged':
      return 'later';
    case 'invalid_request':
      return Object.values(error.details ?? {})
        .map(({ message }) => message)
        .join();
    case 'internal_error':
      return error.request_id;
    default:
      return error satisfies never;
  }
}

const created = await client.POST('/v1/agents', {
  body: { name: 'Sums', instruction: 'Be brief.', model: 'offline-echo', tool: 'calculator' },
});
const agentId = created.data!.data.agent_id;
const ran = await client.POST('/v1/agents/{agentId}/run', {
  params: { path: { agentId } },
  body: { input: 'What is 12*34?' },
});
// A run that was not asked for as a stream of events is answered with JSON.
if (!ran.data || typeof ran.data === 'string') throw new Error('no answer');
const answer = ran.data.data;
if (!('output' in answer)) throw new Error('the run goes on in the background');
const sessionId = answer.session_id;
const events = await client.GET('/v1/sessions/{sessionId}/events', {
  params: { path: { sessionId } },
});
console.log(
  JSON.stringify([
    await nameOf(agentId),
    await nameOf('nobody'),
    answer.metadata.tool_used,
    events.data!.data.map(told).includes('What is 12*34?'),
  ]),
);
