// A client that `openapi-typescript` made, used as a program of somebody else would, without a cast.
// Every failure and every event is told apart by its type: a compiler says where one is forgotten.
import createClient from 'openapi-fetch';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { components, paths } from './schema.d.ts';

const [baseUrl = '', key = ''] = process.argv.slice(2);
const client = createClient<paths, 'application/json'>({ baseUrl, headers: { 'x-api-key': key } });

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
    case 'stream_damaged':
      return `${error.status satisfies 409} ${error.error}`;
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

/** The texts and the result of a run, read from its stream. */
async function streamed(agentId: string, input: string, sessionId: string): Promise<string[]> {
  const { data, error } = await client.POST('/v1/agents/{agentId}/run', {
    params: { path: { agentId } },
    body: { input, session_id: sessionId },
    headers: { accept: 'text/event-stream' },
    parseAs: 'stream',
  });
  if (!data) throw new Error(error?.error);
  const events = data
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  let text = '';
  for await (const event of events) {
    const name = event.event;
    if (name === 'output.delta') {
      const delta: components['schemas']['OutputDelta'] = JSON.parse(event.data);
      text += delta.text;
    } else if (name === 'turn.completed') {
      const completed: components['schemas']['RunAgentResponse200'] = JSON.parse(event.data);
      return [text, completed.data.output];
    } else if (name === 'error') {
      const failure: components['schemas']['Failure'] = JSON.parse(event.data);
      throw new Error(failure.error);
    }
  }
  throw new Error('The stream has no end.');
}

const created = await client.POST('/v1/agents', {
  body: { name: 'Sums', instruction: 'Be brief.', model: 'offline-echo', tool: 'calculator' },
});
if (!created.data) throw new Error(created.error.error);
const agentId = created.data.data.agent_id;
const ran = await client.POST('/v1/agents/{agentId}/run', {
  params: { path: { agentId } },
  body: { input: 'What is 12*34?' },
});
if (!ran.data) throw new Error(`${ran.error.code satisfies string}: ${ran.error.error}`);
if (ran.data.status === 202) throw new Error('the run goes on in the background');
const { output, session_id: sessionId, metadata } = ran.data.data;
const [text, result] = await streamed(agentId, 'Good morning', sessionId);
const transcript = await client.GET('/v1/sessions/{sessionId}', {
  params: { path: { sessionId } },
});
if (!transcript.data) throw new Error('no transcript');
const turns = transcript.data.data.turns;
const events = await client.GET('/v1/sessions/{sessionId}/events', {
  params: { path: { sessionId } },
});
console.log(
  JSON.stringify([
    await nameOf(agentId),
    await nameOf('nobody'),
    metadata.tool_used,
    turns.map((turn) => turn.output).join() === [output, result].join(),
    text === result,
    events.data?.data.map(told).includes('What is 12*34?'),
  ]),
);
