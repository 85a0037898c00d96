import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { isTurnlogError, type ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { StreamKind } from '../../../shared/eventlog/eventTypes.ts';
import type {
  AppendResult,
  Checkpoint,
  EncodedEvent,
  EventBatch,
  EventStore,
  ExpectedRevision,
  Position,
  StoredEvent,
} from '../../../shared/ports/eventStore.ts';

/**
 * What a suite needs of an adapter. The log may hold events of others; the suite's streams have
 * names of their own.
 */
export interface EventStoreFixture {
  /** The store as it is open now. */
  store(): EventStore;
  /** Closes the store and opens it on the same data. */
  reopen(): Promise<void>;
  dispose(): Promise<void>;
}

export type Opened = () => EventStoreFixture;

export const newStream = (kind: StreamKind = 'session'): string =>
  `${kind}-${kind}_${randomUUID()}`;

export const newEvent = (data: unknown = { turn: 1, input: 'hello' }): EncodedEvent => ({
  id: randomUUID(),
  type: 'session.turn_started.v1',
  data: JSON.stringify(data),
  metadata: JSON.stringify({ account_id: 'acct_1', prev_hash: '0'.repeat(64) }),
});

export const newEvents = (count: number): EncodedEvent[] =>
  Array.from({ length: count }, (_, index) => newEvent({ turn: index }));

export const readAll = (store: EventStore, stream: string): Promise<StoredEvent[]> =>
  store.readStream(stream, { direction: 'forwards', limit: 10_000 });

export const idsOf = (events: readonly EncodedEvent[]): string[] => events.map((event) => event.id);

export const refusedWith = async (code: ErrorCode, attempt: Promise<unknown>): Promise<void> => {
  await expect(attempt).rejects.toMatchObject({
    name: 'TurnlogError',
    code,
    retriable: code === 'store_unavailable',
  });
};

/** More often than faults and a busy machine can make a call fail. */
const TRIES = 200;
/** A store that is known to be away fails calls at once. */
const PAUSE_MS = 100;

/** Repeats a call while the store says that it is unavailable, as every caller of the port may. */
export async function untilAnswered<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable') || tries === TRIES) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** Appends events one by one, so that each has an append of its own. */
export async function appendEach(
  store: EventStore,
  stream: string,
  events: readonly EncodedEvent[],
): Promise<AppendResult[]> {
  const results: AppendResult[] = [];
  for (const event of events) {
    const expected: ExpectedRevision = results.at(-1)?.revision ?? 'no_stream';
    results.push(await store.append(stream, expected, [event]));
  }
  return results;
}

/**
 * A subscription by hand: the test says when the next batch is asked for. Stop it at the end of the
 * test.
 */
export function follow(
  store: EventStore,
  after: Checkpoint | Position | undefined,
  batchSize = 100,
) {
  const controller = new AbortController();
  const batches = store
    .subscribe({ after, batchSize, signal: controller.signal })
    [Symbol.asyncIterator]();
  return {
    next: (): Promise<IteratorResult<EventBatch>> => batches.next(),
    stop: (): void => controller.abort(),
    /** Batches up to the one that satisfies `done`, given all the events so far. */
    async until(
      done: (events: readonly StoredEvent[], batch: EventBatch) => boolean,
    ): Promise<EventBatch[]> {
      const taken: EventBatch[] = [];
      for (;;) {
        const { value } = (await batches.next()) as IteratorYieldResult<EventBatch>;
        taken.push(value);
        if (
          done(
            taken.flatMap((batch) => batch.events),
            value,
          )
        )
          return taken;
      }
    },
  };
}

export const onlyOf = (streams: readonly string[], batches: readonly EventBatch[]): StoredEvent[] =>
  batches.flatMap((batch) => batch.events).filter((event) => streams.includes(event.stream));

/** Ends when `count` events of the streams have come. */
export const holds =
  (streams: readonly string[], count: number) =>
  (events: readonly StoredEvent[]): boolean =>
    events.filter((event) => streams.includes(event.stream)).length >= count;

export function expectStrictlyAscending(positions: readonly Position[]): void {
  expect(positions).toEqual([...new Set(positions)].toSorted());
}

/** The position itself with another number: so much further on, in every number that it has. */
export const movedOn = (position: Position, by: bigint): Position =>
  position.replaceAll(/\d+/g, (digits) =>
    String(BigInt(digits) + by).padStart(digits.length, '0'),
  ) as Position;
