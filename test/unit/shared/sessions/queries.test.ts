import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { readPage } from '../../../../shared/eventlog/reading/readWhole.ts';
import { commitText } from '../../../../shared/eventlog/encryption/protectedText.ts';
import { sessionStream } from '../../../../shared/eventlog/streams.ts';
import { SLICE_BYTES } from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { KIB, MIB } from '../../../../shared/lib/units.ts';
import { bytesOf, type ReadOptions } from '../../../../shared/ports/eventStore.ts';
import { readSessionEvents, type SessionSource } from '../../../../shared/sessions/queries.ts';
import { sessionErased, sessionStarted, turnStartData } from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';
import { turnsDuring } from '../../../support/fakes/loopTurns.ts';

const STREAM = sessionStream('session_1');
const KEY = { id: 'k'.repeat(16), secret: Buffer.alloc(32).toString('base64url') };
const LARGE = 'x'.repeat(300 * KIB);

/** The turns of the event loop that have passed. */
let loopTurns: number;
let counting: NodeJS.Immediate;
beforeEach(() => {
  loopTurns = 0;
  const count = (): void => {
    loopTurns += 1;
    counting = setImmediate(count);
  };
  counting = setImmediate(count);
});
afterEach(() => clearImmediate(counting));

/** A session of turns with these inputs, and what was read of it: when, and how much. */
function sessionOf(inputs: readonly string[], isErased = false) {
  const { record } = recordHistory();
  const events = [
    record({ stream: STREAM }, sessionStarted()),
    ...inputs.map((input, index) => {
      const text = commitText(input);
      const data = { turn: index + 1, ...turnStartData, input: { sha256: text.sha256 } };
      const toClose = { texts: [text], key: KEY };
      return record({ stream: STREAM }, { type: 'session.turn_started.v1', data, toClose });
    }),
    ...(isErased ? [record({ stream: STREAM }, sessionErased())] : []),
  ];
  const seen = { reads: [] as number[], decryptedAt: [] as number[] };
  async function readStream(
    _stream: string,
    { from = 0, limit, maxBytes = Infinity, direction }: ReadOptions,
  ) {
    if (direction === 'backwards') return events.slice(-limit);
    let bytes = 0;
    const page = events.slice(from, from + limit).filter((event) => {
      const fits = bytes < maxBytes;
      if (fits) bytes += bytesOf(event);
      return fits;
    });
    seen.reads.push(page.length);
    return page;
  }
  const source = {
    store: {
      readStream,
      keys: {
        async find(ids: ReadonlySet<string>) {
          seen.decryptedAt.push(loopTurns);
          return new Map([...ids].map((id) => [id, KEY]));
        },
        isErased: () => isErased,
      },
    },
    damaged: createDamagedStreams(() => undefined),
    readModels: {
      findSession: async () => ({
        session_id: 'session_1',
        account_id: 'acct_1',
        revision: inputs.length,
      }),
    },
  } as unknown as SessionSource;
  return { source, seen };
}

const readEvents = (source: SessionSource, limit = 100) =>
  readSessionEvents(source, 'acct_1', 'session_1', { limit, bytes: MIB });

test('each decryption of a large event has a step of the event loop to itself', async () => {
  const { source, seen } = sessionOf([LARGE, LARGE, LARGE]);
  const { rows, more } = await readEvents(source);
  expect([rows.length, more]).toEqual([4, false]);
  // Once for the check of the event and for its form with the salt.
  expect(seen.decryptedAt).toHaveLength(3);
  expect(new Set(seen.decryptedAt).size).toBe(seen.decryptedAt.length);
});

test('a page reads one event beyond those that fit, and no more', async () => {
  const { source, seen } = sessionOf(Array.from({ length: 20 }, () => LARGE));
  const { rows, more } = await readEvents(source);
  expect([rows.length, more]).toEqual([4, true]);
  // The first event is read once more, for its account.
  expect(seen.reads.reduce((sum, events) => sum + events)).toBe(1 + 5);
});

test('a page of small events is read at once', async () => {
  const { source, seen } = sessionOf(['small', 'small', 'small']);
  const { rows, more } = await readEvents(source);
  expect([rows.length, more]).toEqual([4, false]);
  // After the first event, for its account.
  expect(seen.reads).toEqual([1, 4]);
});

test('a long page of small events gives other work turns of the event loop', async () => {
  const { source, seen } = sessionOf(Array.from({ length: 600 }, () => 'small'));
  const turns = await turnsDuring(() => readEvents(source, 1_000));
  // 19 groups of events, before each of which the time is looked at.
  expect(seen.reads).toHaveLength(1 + 19);
  expect(turns).toBeGreaterThanOrEqual(3);
});

test.each([1, 2, 3, 4, 5])('pages of %i large and small events have every event', async (limit) => {
  const { source } = sessionOf(['a', LARGE, 'b', 'c'.repeat(SLICE_BYTES), LARGE]);
  const revisions: number[] = [];
  for (let more = true; more;) {
    const after = revisions.at(-1);
    const page = { limit, bytes: MIB, ...(after !== undefined && { after }) };
    const read = await readSessionEvents(source, 'acct_1', 'session_1', page);
    revisions.push(...read.rows.map(({ revision }) => revision));
    more = read.more;
  }
  expect(revisions).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a page of a session whose erasure the read models do not show yet is rejected', async () => {
  const { source } = sessionOf(['small'], true);
  await expect(readEvents(source)).rejects.toMatchObject({ code: 'session_erased' });
});

test('a page of the log with large events is decoded an event at a time', async () => {
  const { source, seen } = sessionOf([LARGE, 'small', LARGE]);
  const page = { direction: 'forwards', from: 1, limit: 10 } as const;
  expect(await readPage(source, STREAM, page)).toHaveLength(3);
  const [first, second] = seen.decryptedAt;
  // The small event is decoded together with the large one after it.
  expect(seen.decryptedAt).toHaveLength(2);
  expect(second).toBeGreaterThan(first!);
});
