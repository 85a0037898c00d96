import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeEvent } from '../../../../../shared/eventlog/codec.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  compareHeads,
  type SavedHead,
} from '../../../../../shared/eventlog/reading/compareHeads.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { randomHistory } from '../../../../support/builders/randomHistory.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

function headsOf(log: readonly StoredEvent[]): SavedHead[] {
  const heads = new Map<string, SavedHead>();
  for (const { stream, revision, metadata } of log.map(decodeEvent))
    heads.set(stream, { stream, revision, hash: metadata.hash });
  return [...heads.values()];
}

async function* each<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  yield* values;
}

const compare = (
  store: Parameters<typeof compareHeads>[0]['store'],
  heads: Iterable<SavedHead>,
  signal = new AbortController().signal,
) => compareHeads({ store, heads: each(heads), signal, onProgress: () => undefined });

const FATES = ['kept', 'deleted', 'cut', 'rewritten'] as const;

/** The log after a stream has met its fate. */
function after(log: StoredEvent[], { stream, revision }: SavedHead, fate: (typeof FATES)[number]) {
  const of = (event: StoredEvent) => event.stream === stream;
  if (fate === 'deleted') return log.filter((event) => !of(event));
  if (fate === 'cut') return log.filter((event) => !of(event) || event.revision < revision);
  if (fate === 'kept') return log;
  return log.map((event) =>
    of(event) && event.revision === revision
      ? { ...event, metadata: event.metadata.replace(/"hash":"\w+"/, `"hash":"${'f'.repeat(64)}"`) }
      : event,
  );
}

test('tells of any log which streams were deleted, cut or rewritten, and lets the others grow', () =>
  fc.assert(
    fc.asyncProperty(
      randomHistory(''),
      fc.nat(60),
      fc.array(fc.constantFrom(...FATES), { minLength: 6, maxLength: 6 }),
      async (log, kept, fates) => {
        const heads = headsOf(log.slice(0, kept));
        // A stream of one event that is cut is gone.
        const fate = heads.map(({ revision }, index) =>
          fates[index] === 'cut' && revision === 0 ? 'deleted' : fates[index]!,
        );
        const grown = heads.reduce(
          (rest, head, index) =>
            after(
              fate[index] === 'cut'
                ? rest.filter((e) => e.stream !== head.stream || e.revision <= head.revision)
                : rest,
              head,
              fate[index]!,
            ),
          log,
        );
        const count = (loss: string): number => fate.filter((one) => one === loss).length;
        const first = fate.findIndex((one) => one !== 'kept');
        expect(await compare(memoryReads(grown), heads)).toEqual({
          compared: heads.length,
          lost: { deleted: count('deleted'), cut: count('cut'), rewritten: count('rewritten') },
          first:
            first < 0
              ? undefined
              : expect.objectContaining({ head: heads[first], loss: fate[first] }),
        });
      },
    ),
  ));

const head = (stream: string): SavedHead => ({ stream, revision: 2, hash: 'a'.repeat(64) });

test('an event that is gone though later ones are there is a cut', async () => {
  const later = { stream: 's', revision: 3, metadata: '{}', data: '{}' } as StoredEvent;
  expect((await compare(memoryReads([later]), [head('s')])).first).toEqual({
    head: head('s'),
    loss: 'cut',
    revision: 3,
  });
});

test('a stream that the store says was deleted or is hidden is deleted', async () => {
  const readStream = async () => {
    throw new TurnlogError('stream_damaged', 'hidden');
  };
  expect((await compare({ readStream }, [head('s')])).lost.deleted).toBe(1);
});

test('compares any number of heads, a few at a time, and ends early when it is interrupted', async () => {
  const interrupt = new AbortController();
  let [reading, most] = [0, 0];
  const readStream = async () => {
    reading += 1;
    most = Math.max(most, reading);
    await new Promise(setImmediate);
    reading -= 1;
    return [];
  };
  const many = Array.from({ length: 1_234 }, (_, index) => head(`s-${index}`));
  expect((await compare({ readStream }, many)).lost.deleted).toBe(1_234);
  expect(most).toBeLessThan(100);

  function* untilInterrupted() {
    for (const [index, one] of many.entries()) {
      if (index === 300) interrupt.abort();
      yield one;
    }
  }
  const { compared } = await compare({ readStream }, untilInterrupted(), interrupt.signal);
  expect(compared).toBe(300);
});
