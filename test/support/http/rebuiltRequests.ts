import { expect } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import { everyPage } from './everyPage.ts';
import type { Client, TestService } from './service.ts';

/** A request as the API tells it. */
export interface ToldRequest {
  call: number;
  purpose: 'answer' | 'compaction';
  round: number | null;
  request: ChatRequest;
  request_sha256: string;
  recorded_sha256: string;
  matches: boolean;
}

type Reader = Pick<Client, 'get'>;

interface RecordedEvent {
  type: string;
  revision: number;
  data: any;
}

/** A call as its event tells it. */
interface RecordedCall {
  request_sha256: { text: string };
  fallback?: object;
}

/**
 * The answered model calls of a session in the order of their events, those that it shares first, up to
 * a revision; a summary for no turn is none.
 */
async function callsIn(service: Reader, session: string, last = Infinity): Promise<RecordedCall[]> {
  const calls: RecordedCall[] = [];
  const waiting: RecordedCall[] = [];
  const path = `/v1/sessions/${session}/events?limit=1000`;
  for await (const { type, revision, data } of everyPage<RecordedEvent>(service, path)) {
    if (revision > last) break;
    const { forked_from } = data;
    if (forked_from)
      calls.push(...(await callsIn(service, forked_from.session_id, forked_from.revision)));
    if (type === 'session.compacted.v1') waiting.push(data.call);
    if (type === 'session.turn_started.v1') calls.push(...waiting.splice(0));
    if (Array.isArray(data.calls)) calls.push(...data.calls);
  }
  return calls;
}

/**
 * The requests of a session's turns, as the service builds them again. Each is expected to be what
 * was recorded when it was sent, by its own hash and not by what the service says of it, and each
 * answered call to have one.
 */
export async function rebuiltRequests(service: Reader, session: string): Promise<ToldRequest[]> {
  const told: ToldRequest[] = [];
  const turnsOf = ({ turns }: { turns: { turn: number }[] }) => turns;
  for await (const { turn } of everyPage(service, `/v1/sessions/${session}`, turnsOf)) {
    const path = `/v1/sessions/${session}/turns/${turn}/requests`;
    for await (const request of everyPage<ToldRequest>(service, path)) told.push(request);
  }
  const recorded = (await callsIn(service, session)).map((call) => call.request_sha256.text);
  expect(told.map(({ request }) => sha256(canonicalJson(request)))).toEqual(recorded);
  for (const { matches, request_sha256, recorded_sha256 } of told)
    expect({ matches, recorded_sha256 }).toEqual({
      matches: true,
      recorded_sha256: request_sha256,
    });
  return told;
}

/** The sessions of a list, which leaves out those that are erased. */
async function* sessionsIn(service: Reader, query = ''): AsyncGenerator<string, void> {
  const path = `/v1/sessions?limit=1000${query}`;
  for await (const { session_id } of everyPage<{ session_id: string }>(service, path))
    yield session_id;
}

/**
 * Expects each model request of all sessions of the account, those that replays made as well, to be
 * built again as it was sent, and gives how many there were.
 */
export async function everyRequestRebuilt(service: Reader): Promise<number> {
  let requests = 0;
  for await (const session of sessionsIn(service))
    requests += (await rebuiltRequests(service, session)).length;
  const replays = '/v1/replays?limit=1000';
  for await (const { replay_id } of everyPage<{ replay_id: string }>(service, replays))
    for await (const session of sessionsIn(service, `&replay_id=${replay_id}`))
      requests += (await rebuiltRequests(service, session)).length;
  return requests;
}

/** Closes a service once each model request in its log was built again as it was sent. */
export async function closeRebuilt(service: TestService): Promise<void> {
  try {
    await everyRequestRebuilt(service);
  } finally {
    await service.close();
  }
}
