import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SessionEvent } from '../../../shared/sessions/events.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import type { TestService } from '../../support/http/service.ts';
import {
  ALL_KINDS,
  answerAgain,
  played,
  recordSession,
  startRecorder,
} from '../../support/builders/recordings.ts';
import { comparisonsIn, endOf, eventsOf, startReplayOf } from '../../support/builders/replays.ts';

let service: TestService;
beforeAll(async () => {
  service = await startRecorder();
}, 240_000);
afterAll(() => closeRebuilt(service));

const isCompleted = (event: SessionEvent) => event.type === 'session.turn_completed.v1';

/** What the turns of a session that were answered said, asked and called; what they took is left out. */
function saidIn(events: readonly SessionEvent[]) {
  const answered = new Set(events.filter(isCompleted).map(({ data }) => data.turn));
  return events.flatMap((event): object[] => {
    switch (event.type) {
      case 'session.turn_completed.v1': {
        const { output, calls } = event.data;
        return [{ output, asked: calls.map(({ request_sha256 }) => request_sha256) }];
      }
      case 'session.tool_called.v1': {
        const { turn, call_id, tool, arguments: args, content, result, is_error } = event.data;
        return answered.has(turn) ? [{ call_id, tool, args, content, result, is_error }] : [];
      }
      case 'session.compacted.v1':
        return [{ summary: event.data.summary, asked: event.data.call.request_sha256 }];
      case 'session.turn_started.v1': {
        const { turn, input, settings, model } = event.data;
        return answered.has(turn) ? [{ input, settings, model }] : [];
      }
      default:
        return [];
    }
  });
}

const seen = { calls: 0, summaries: 0, fallbacks: 0, skipped: 0 };

test('whatever was recorded is replayed to the byte, and calls no tool, also after a restart in the middle', async () => {
  const turns = fc.array(played, { minLength: 4, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(turns, fc.boolean(), async (steps, interrupted) => {
      const { session } = await recordSession(service, steps);
      const recorded = await eventsOf(service.folder, session);
      answerAgain(service);
      const asked = service.model.requests.length;
      const id = await startReplayOf(service.folder, { sessions: [session] });
      if (interrupted) {
        await Promise.race([service.model.received(asked + 3), endOf(service.folder, id)]);
        await service.restart();
      }
      const told = await endOf(service.folder, id);
      expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
      const replayed = await eventsOf(service.folder, told.made.get(session)!);
      expect(saidIn(replayed)).toEqual(saidIn(recorded));
      const answered = recorded.filter(isCompleted).map(({ data }) => data.turn);
      const begun = replayed.flatMap((event) =>
        event.type === 'session.turn_started.v1' ? [event.data] : [],
      );
      const completed = new Set(replayed.filter(isCompleted).map(({ data }) => data.turn));
      expect(
        begun.filter(({ turn }) => completed.has(turn)).map(({ replay_of }) => replay_of),
      ).toEqual(answered);
      for (const event of replayed)
        if (event.type === 'session.tool_called.v1') {
          expect(event.data.replayed).toBe('recorded');
          seen.calls += 1;
        }
      for (const { turn, outcome, requests } of comparisonsIn(told)) {
        const isAnswered = answered.includes(turn);
        expect(outcome).toBe(isAnswered ? 'same' : 'skipped');
        expect(requests).toBe(isAnswered ? 'same' : undefined);
        if (!isAnswered) seen.skipped += 1;
      }
      for (const event of recorded) {
        if (event.type === 'session.compacted.v1') seen.summaries += 1;
        if (event.type === 'session.turn_completed.v1' && event.data.calls[0]?.fallback)
          seen.fallbacks += 1;
      }
    }),
    {
      numRuns: 4,
      examples: [
        [ALL_KINDS, false],
        [ALL_KINDS, true],
      ],
      endOnFailure: true,
    },
  );
  expect(Object.entries(seen).filter(([, count]) => count === 0)).toEqual([]);
}, 600_000);
