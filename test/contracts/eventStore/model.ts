import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  AppendResult,
  EncodedEvent,
  EventStore,
  ExpectedRevision,
} from '../../../shared/ports/eventStore.ts';
import { idsOf, newEvent, newStream, readAll, type Opened } from './support.ts';
import { size } from '../../support/jest/size.ts';

interface Attempt {
  stream: number;
  /** How far from the stream's true revision the append is aimed. */
  aim: number;
  /**
   * An event for each number: a new one for 0, otherwise one that many places back among all events
   * so far.
   */
  events: number[];
  /** Sends the append before this one again instead. */
  repeat: boolean;
}

const attempts = fc.array(
  fc.record<Attempt>({
    stream: fc.nat({ max: 2 }),
    aim: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -3, max: 2 })),
    events: fc.array(
      fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 6 })),
      { maxLength: 3 },
    ),
    repeat: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
  }),
  { minLength: 1, maxLength: 25 },
);

/** The port's rules over plain arrays. Returns the revision, or the code of the refusal. */
function appendToModel(
  streams: string[][],
  target: { stream: number; expected: number },
  ids: readonly string[],
): number | string {
  const stream = streams[target.stream] ?? [];
  const first = target.expected + 1;
  if (ids.length === 0) return 'event_invalid';
  if (new Set(ids).size < ids.length) return 'event_id_reused';
  if (ids.every((id, index) => stream[first + index] === id)) return target.expected + ids.length;
  if (ids.some((id) => streams.flat().includes(id))) return 'event_id_reused';
  if (stream.length !== first) return 'stream_conflict';
  stream.push(...ids);
  return target.expected + ids.length;
}

const outcome = (append: Promise<AppendResult>): Promise<AppendResult | string> =>
  append.catch((error: unknown) => {
    if (isTurnlogError(error)) return error.code;
    throw error;
  });

async function compare(store: EventStore, sequence: readonly Attempt[]): Promise<void> {
  const names = [newStream('account'), newStream('agent'), newStream('session')];
  const model: string[][] = [[], [], []];
  const sent: EncodedEvent[] = [];
  const positions = new Map<string, string>();
  let last: { stream: number; expected: number; events: EncodedEvent[] } | undefined;

  for (const attempt of sequence) {
    const aimed = (model[attempt.stream]?.length ?? 0) - 1 + attempt.aim;
    const events = attempt.events.map(
      (back) => (back === 0 ? undefined : sent.at(-back)) ?? newEvent(),
    );
    last =
      attempt.repeat && last
        ? last
        : { stream: attempt.stream, expected: Math.max(aimed, -1), events };
    sent.push(...last.events);
    const expected: ExpectedRevision = last.expected < 0 ? 'no_stream' : last.expected;
    const actual = await outcome(store.append(names[last.stream] ?? '', expected, last.events));
    const due = appendToModel(model, last, idsOf(last.events));
    expect(typeof actual === 'string' ? actual : actual.revision).toBe(due);
    if (typeof actual === 'string') continue;
    const place = `${last.stream} ${actual.revision}`;
    expect(actual.position).toBe(positions.get(place) ?? actual.position);
    positions.set(place, actual.position);
  }
  for (const [index, name] of names.entries())
    expect(idsOf(await readAll(store, name))).toEqual(model[index]);
}

export function modelContract(opened: Opened): void {
  test('gives any sequence of appends the results that the rules of the port give it', async () => {
    await fc.assert(
      fc.asyncProperty(attempts, (sequence) => compare(opened().store(), sequence)),
      { numRuns: size({ small: 60, full: 150 }) },
    );
  });
}
