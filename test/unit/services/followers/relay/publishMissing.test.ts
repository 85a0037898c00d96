import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { publishMissing } from '../../../../../services/followers/relay/publishMissing.ts';
import {
  createCheckpoint,
  readLogIdentity,
} from '../../../../../shared/eventlog/identity/logIdentity.ts';
import { logStream } from '../../../../../shared/eventlog/streams.ts';
import type { Checkpoint, Position } from '../../../../../shared/ports/eventStore.ts';
import type { Publication } from '../../../../../shared/publicEvents/publisher.ts';
import type { PublicEvent } from '../../../../../shared/publicEvents/publicEvent.ts';
import { agentCreated, restoreAccepted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { recordingLogger } from '../../../../support/stores/projections/projector.ts';
import { publisherError } from '../../../../support/fakes/memoryTopics.ts';
import { fixedLog, type FixedLog } from '../../../../support/fakes/fixedLog.ts';

const { record } = recordHistory();
const agents = [0, 1, 2, 3].map((index) =>
  record({ stream: `agent-agent_${index}` }, agentCreated()),
);
const DECLARED = record({ stream: logStream(agents[0]!.id) }, restoreAccepted());
const log = fixedLog([...agents, DECLARED], 2);
const ids = agents.map(({ id }) => id);

const old: Checkpoint = {
  log_id: 'log_0',
  position: '9' as Position,
  event_id: 'lost',
  event_hash: '',
};

/** What is published, in order, when these ids are found in the topics. */
async function missing(
  kept: readonly string[],
  {
    startAfter,
    visitMs = 0,
    ...methods
  }: { startAfter?: Position; visitMs?: number } & Partial<Publication> = {},
  from: FixedLog = log,
) {
  const published: PublicEvent[] = [];
  const checkpoints: Checkpoint[] = [];
  let beats = 0;
  const reached = await publishMissing(
    {
      log: from,
      startAfter,
      signal: new AbortController().signal,
      takeOverMs: 60,
      logger: recordingLogger().logger,
    },
    {
      checkpoint: old,
      async publish(events, checkpoint) {
        published.push(...events);
        checkpoints.push(checkpoint);
      },
      beat: async () => void (beats += 1),
      async visitPublished(visit) {
        kept.forEach(visit);
        await new Promise((resolve) => setTimeout(resolve, visitMs));
      },
      parked: () => ({ count: 0, keys: [] }),
      close: async () => undefined,
      ...methods,
    },
    old,
  );
  return { published, checkpoints, reached, beats };
}

test('what follows the last event that was published is published, marked; the checkpoint moves last', async () => {
  const { published, checkpoints, reached } = await missing(['lost', ids[1]!, ids[0]!]);
  expect(published.map(({ id, restored }) => [id, restored])).toEqual([
    [ids[2], DECLARED.id],
    [ids[3], DECLARED.id],
  ]);
  const end = createCheckpoint((await readLogIdentity(log))!, DECLARED);
  expect(reached).toEqual(end);
  expect(checkpoints.at(-1)).toEqual(end);
  expect(new Set(checkpoints.slice(0, -1))).toEqual(new Set([old]));
});

test('what a topic does not keep any more is not published again', async () => {
  const { published } = await missing([ids[2]!]);
  expect(published.map(({ id }) => id)).toEqual([ids[3]]);
});

test('what was to be left out from the beginning is left out, where nothing was published since', async () => {
  const { published } = await missing([], { startAfter: agents[1]!.position });
  expect(published.map(({ id }) => id)).toEqual([ids[2], ids[3]]);
});

test('everything is published where nothing of the log was', async () => {
  const { published } = await missing(['lost']);
  expect(published.map(({ id }) => id)).toEqual(ids);
});

test('life is shown while the topics give something, and no longer', async () => {
  const { beats } = await missing(['lost'], { visitMs: 400 });
  expect(beats).toBe(1);
});

describe('a relay that is fenced while it compares', () => {
  const fenced = async (): Promise<never> => {
    throw publisherError('publisher_fenced');
  };

  test('stops reading the topics, and sends no further heartbeat', async () => {
    let beats = 0;
    const comparing = missing([], {
      async beat() {
        beats += 1;
        // Meanwhile the next heartbeats become due.
        await sleep(60);
        await fenced();
      },
      async visitPublished(visit, signal) {
        for (;;) {
          visit('an event of another log');
          await sleep(5);
          signal.throwIfAborted();
        }
      },
    });
    await expect(comparing).rejects.toMatchObject({ code: 'publisher_fenced' });
    expect(beats).toBe(1);
  });

  test('stops reading the log', async () => {
    const endless: FixedLog = {
      ...log,
      async *subscribe({ signal }) {
        while (!signal.aborted) {
          await sleep(5);
          yield { events: [], position: undefined, checkpoint: undefined, caughtUp: false };
        }
      },
    };
    await expect(missing([], { beat: fenced }, endless)).rejects.toMatchObject({
      code: 'publisher_fenced',
    });
  });

  test('reports that it was fenced, even if reading the topics fails as well', async () => {
    const comparing = missing([], {
      beat: fenced,
      async visitPublished() {
        await sleep(100);
        throw publisherError('publisher_unavailable');
      },
    });
    await expect(comparing).rejects.toMatchObject({ code: 'publisher_fenced' });
  });

  test.each(['fails', 'succeeds'])(
    'reports that it was fenced by a heartbeat that is in flight when the reading %s',
    async (outcome) => {
      const heartbeat = Promise.withResolvers<void>();
      const comparing = missing([], {
        async beat() {
          heartbeat.resolve();
          await sleep(60);
          await fenced();
        },
        async visitPublished(visit) {
          visit('an event of another log');
          await heartbeat.promise;
          if (outcome === 'fails') throw publisherError('publisher_unavailable');
        },
      });
      await expect(comparing).rejects.toMatchObject({ code: 'publisher_fenced' });
    },
  );
});
