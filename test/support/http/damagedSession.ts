import { expect } from '@jest/globals';
import { expectFailure } from './failures.ts';
import { eventually } from '../processes/operator.ts';
import type { Reply, TestService } from './service.ts';

/**
 * Nothing about a damaged stream takes longer to be answered; what is missing is looked for for
 * five seconds.
 */
const ANSWER_LIMIT_MS = 8_000;

export interface TestSession {
  agent: string;
  session: string;
  stream: string;
}

export const run = (
  service: TestService,
  agent: string,
  input: string,
  session_id?: string,
): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, {
    input,
    ...(session_id !== undefined && { session_id }),
  });

/** A session of that many turns: `session.started`, then two events for each. The read models show it. */
export async function converse(
  service: TestService,
  turns: number,
  agent?: string,
): Promise<TestSession> {
  const agentId = agent ?? (await service.createAgent());
  let session: string | undefined;
  for (let turn = 1; turn <= turns; turn += 1)
    session = (await run(service, agentId, `question ${turn}`, session)).body.data
      .session_id as string;
  // The read models gather events, but not while a read waits for them.
  await service.get('/v1/sessions?limit=1');
  return { agent: agentId, session: session!, stream: `session-${session!}` };
}

/** What was found of a stream. */
export interface Found {
  first_revision: number | null;
  last_revision: number | null;
}

async function answered(call: () => Promise<Reply>): Promise<Reply> {
  const began = performance.now();
  const reply = await call();
  expect(performance.now() - began).toBeLessThan(ANSWER_LIMIT_MS);
  return reply;
}

const said = ({ first_revision, last_revision }: Found): string =>
  first_revision === null
    ? 'no event of it was found'
    : `revisions ${first_revision} to ${last_revision} were found`;

/**
 * Expects that run and events say that the session is damaged, readiness names it, and everything
 * else goes on.
 */
export async function expectDamaged(
  service: TestService,
  { agent, session, stream }: TestSession,
  found: Found,
): Promise<void> {
  const answers = [
    [await answered(() => run(service, agent, 'once more', session)), '/session_id'],
    [await answered(() => service.get(`/v1/sessions/${session}/events`)), 'path'],
    [await answered(() => run(service, agent, 'and again', session)), '/session_id'],
  ] as const;
  for (const [reply, path] of answers) {
    const { error, details } = expectFailure(reply, 'stream_damaged');
    expect(error).toContain(stream);
    expect(error).toContain(said(found));
    expect(details).toEqual({ stream: { message: error, path } });
  }
  expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
  const { status, body } = await service.get('/health/ready');
  expect([status, body.data.status]).toEqual([200, 'degraded']);
  expect(body.data.damaged_streams).toContainEqual({ stream, ...found });
  expect((await converse(service, 2, agent)).session).not.toBe(session);
}

/** Expects that the session goes on, and that readiness has forgotten it. */
export async function expectWhole(
  service: TestService,
  { agent, session, stream }: TestSession,
): Promise<void> {
  const reply = await run(service, agent, 'whole again', session);
  expect([reply.status, reply.body.code, reply.body.error]).toEqual([200, undefined, undefined]);
  const events = await service.get(`/v1/sessions/${session}/events`);
  expect([events.status, events.body.error]).toEqual([200, undefined]);
  const { body } = await eventually(
    () => service.get('/health/ready'),
    ({ status }) => status === 200,
  );
  expect(
    ((body.data.damaged_streams ?? []) as { stream: string }[]).map((damaged) => damaged.stream),
  ).not.toContain(stream);
}
