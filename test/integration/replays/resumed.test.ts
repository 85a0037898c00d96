import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openFileReplayAttempts } from '../../../infra/files/replayAttempts.ts';
import { authorOf, prepareEvents } from '../../../shared/commandHandling/prepareEvents.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { NO_STREAM, appendEvents } from '../../../shared/eventlog/append.ts';
import { replayStream, sessionStream } from '../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { SessionEvent } from '../../../shared/sessions/events.ts';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import {
  replayStarted,
  sessionStarted,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../support/builders/events.ts';
import { echo, forking } from '../../support/http/forking.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { asOperator } from '../../support/processes/operator.ts';
import { replaysOf } from '../../support/http/replaysOverHttp.ts';
import { comparisonsIn, toldOf } from '../../support/builders/replays.ts';

let service: TestService;
let agent: string;
let session: string;
beforeAll(async () => {
  service = await startTestService(echo);
  agent = await service.createAgent();
  session = await forking(service).run(agent, ['a', 'b', 'c']);
}, 120_000);
afterAll(() => service.close());

const outcomes = ({ turns }: { turns: { outcome: string; replay_turn: number }[] }) =>
  turns.map(({ outcome, replay_turn }) => `${replay_turn} ${outcome}`);

test('a turn that had failed before a restart is not run again, and the next ones follow', async () => {
  const begun = Promise.withResolvers<void>();
  service.model.use(({ messages }) => {
    if (messages.at(-1)!.content === 'a') return { status: 400 };
    begun.resolve();
    return { fault: 'never_answer' };
  });
  const replays = replaysOf(service);
  const id = await replays.start([session]);
  await begun.promise;
  // It is recorded before the next turn is begun.
  const told = comparisonsIn(await toldOf(service.folder, id));
  expect(told).toMatchObject([{ turn: 1, outcome: 'failed' }]);
  // The replay may continue before the restart resolves.
  service.model.use(echo);
  await service.restart();
  const replay = await replays.ended(id);
  expect(replay.sums.sessions).toMatchObject({ completed: 1, failed: 0 });
  expect(outcomes(replay)).toEqual(['1 failed', '3 same', '4 same']);
}, 60_000);

/** Writes that as many processes died in a replayed turn as it has attempts. */
async function writeDeaths(replay_id: string, session_id: string, turn: number): Promise<void> {
  const folder = join(service.folder, 'replay-attempts');
  for (let deaths = 0; deaths < LIMITS.replays.tries; deaths += 1)
    await openFileReplayAttempts(folder).begin({ replay_id, session_id, turn });
}

/** Writes a replay that a process left with these attempts of turns, and that others died in a turn. */
async function writeReplay(attempts: readonly SessionEvent[], crashedTurn?: number) {
  const { metadata, revision } = (await forking(service).events(session)).at(-1);
  const { account_id } = metadata as { account_id: string };
  return asOperator(service.folder, async (operator) => {
    const replay_id = operator.ids.typeId('replay');
    const replay_session_id = operator.ids.typeId('session');
    const author = authorOf({ account_id, key_id: 'key_1', request_id: 'test' });
    const write = async (stream: string, events: readonly DomainEvent[]): Promise<void> => {
      const facts = await prepareEvents(operator, author, NO_STREAM, events);
      await appendEvents(operator.store, { stream, head: NO_STREAM }, facts);
    };
    await write(sessionStream(replay_session_id), [
      sessionStarted(agent, { replay: { replay_id, session_id: session, role: 'replay' } }),
      ...attempts,
    ]);
    if (crashedTurn) await writeDeaths(replay_id, replay_session_id, crashedTurn);
    await write(replayStream(replay_id), [
      replayStarted({
        sessions: [{ session_id: session, revision, turns: 3 }],
        budget_tokens: 1_000_000,
        checks: JSON.stringify([{ contains: '' }]),
      }),
      { type: 'replay.session_started.v1', data: { session_id: session, replay_session_id } },
    ]);
    return replay_id;
  });
}

test('nor is one that had failed, was not compared, and has a try of a later turn behind it', async () => {
  service.model.use(echo);
  const id = await writeReplay([
    turnStarted(1, { replay_of: 1 }),
    turnFailed(1),
    turnStarted(2, { replay_of: 2 }),
    turnInterrupted(2),
  ]);
  const replays = replaysOf(service);
  const replay = await replays.ended(id);
  expect(replay.sums.sessions).toMatchObject({ completed: 1, failed: 0 });
  expect(outcomes(replay)).toEqual(['1 failed', '3 same', '4 same']);
}, 60_000);

test('a turn that outages of the store left open, once for each try, is run again after a restart', async () => {
  service.model.use(echo);
  const outages = Array.from({ length: LIMITS.replays.tries }, (_, at) => at + 1);
  const id = await writeReplay(
    outages.flatMap((turn) => [turnStarted(turn, { replay_of: 1 }), turnInterrupted(turn)]),
  );
  const replay = await replaysOf(service).ended(id);
  expect(outcomes(replay)).toEqual(['4 same', '5 same', '6 same']);
}, 60_000);

test('a turn that ends the process before it has begun is not run again either, and the next ones follow', async () => {
  const begun = Promise.withResolvers<void>();
  service.model.use(() => {
    begun.resolve();
    return { fault: 'never_answer' };
  });
  const replays = replaysOf(service);
  const replay_id = await replays.start([session]);
  await begun.promise;
  const session_id = (await toldOf(service.folder, replay_id)).made.get(session)!;
  await writeDeaths(replay_id, session_id, 1);
  const asked = service.model.requests.length;
  // The replay may continue before the restart resolves.
  service.model.use(echo);
  await service.restart();
  const replay = await replays.ended(replay_id);
  expect(service.model.requests.length - asked).toBe(2);
  expect(replay.sums.sessions).toMatchObject({ completed: 1, failed: 0 });
  expect(replay.turns).toMatchObject([
    { outcome: 'failed', code: 'crash' },
    { outcome: 'same' },
    { outcome: 'same' },
  ]);
}, 60_000);

test('a turn whose comparison ends the process is not compared again, but counted', async () => {
  service.model.use(echo);
  const id = await writeReplay([turnStarted(1, { replay_of: 1 }), turnCompleted(1)], 1);
  const replay = await replaysOf(service).ended(id);
  expect(replay.sums.sessions).toMatchObject({ completed: 1, failed: 0 });
  expect(outcomes(replay)).toEqual(['1 failed', '2 same', '3 same']);
  expect(replay.turns).toMatchObject([
    { code: 'crash', checks: [{ passed: false, code: 'no_answer' }] },
    { checks: [{ passed: true }] },
    { checks: [{ passed: true }] },
  ]);
  const { tokens } = replay.turns[0].replayed;
  expect(tokens).toEqual((turnCompleted(1) as { data: { tokens: unknown } }).data.tokens);
}, 60_000);

test('a turn that is given up does not count the tokens of the later turns that were replayed before', async () => {
  service.model.use(echo);
  const replayed = [1, 2].flatMap((turn) => [
    turnStarted(turn, { replay_of: turn }),
    turnCompleted(turn),
  ]);
  const replay = await replaysOf(service).ended(await writeReplay(replayed, 1));
  expect(replay.turns).toMatchObject([{ code: 'crash' }, { replay_turn: 2 }, { replay_turn: 3 }]);
  expect(replay.sums.other_tokens).toBe(0);
}, 60_000);

test('the summaries before a turn that was given up are not made before the next one, also after a restart', async () => {
  const isSummary = ({ messages }: ChatRequest) =>
    JSON.stringify(messages[0]).includes('Sum it up');
  const answer = (request: ChatRequest) =>
    isSummary(request) ? { text: 'in short' } : echo(request);
  service.model.use(answer);
  const narrow = await service.createAgent({ model: 'narrow', compaction: true });
  const inputs = Array.from({ length: 8 }, (_, turn) => `turn ${turn} ${'so it is '.repeat(4)}`);
  const recorded = await forking(service).run(narrow, inputs);
  const events = await forking(service).events(recorded);
  const summed = events.findIndex(({ type }: SessionEvent) => type === 'session.compacted.v1');
  const { turn } = events[summed + 1].data;

  /** Answers up to a turn, and resolves when the model is asked for it. */
  function answerUpTo(last: number): Promise<void> {
    const asked = Promise.withResolvers<void>();
    service.model.use((request) => {
      if (request.messages.at(-1)!.content !== inputs[last - 1]) return answer(request);
      asked.resolve();
      return { fault: 'never_answer' };
    });
    return asked.promise;
  }
  const replays = replaysOf(service);
  const first = answerUpTo(1);
  const replay_id = await replays.start([recorded], { turns: { up_to: turn + 1 } });
  await first;
  const { made } = await toldOf(service.folder, replay_id);
  await writeDeaths(replay_id, made.get(recorded)!, turn);
  const summariesBefore = service.model.requests.filter(isSummary).length;
  const next = answerUpTo(turn + 1);
  await service.restart();
  await next;
  service.model.use(answer);
  await service.restart();
  const replay = await replays.ended(replay_id);
  expect(replay.turns.slice(-2)).toMatchObject([{ code: 'crash' }, { turn: turn + 1 }]);
  expect(service.model.requests.filter(isSummary)).toHaveLength(summariesBefore);
}, 60_000);
