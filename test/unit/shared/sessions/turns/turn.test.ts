import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { totalBytesOf, type StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { readTurn } from '../../../../../shared/sessions/turns/turn.ts';
import { largeTurn, sessionWithLargeTurn } from '../../../../support/builders/largeTurn.ts';

describe('a turn of many pages', () => {
  test('is read within memory for its events and the page in progress, and then for its events', async () => {
    const { log, read, source } = sessionWithLargeTurn(12);
    const held: number[] = [];
    const row = await readTurn(source, largeTurn, (bytes) => held.push(bytes));
    expect(row.tool_calls.map(({ call_id }) => call_id)).toEqual(
      Array.from({ length: 12 }, (_, at) => `call_${at}`),
    );
    const ofTurn = totalBytesOf(log.slice(1, -2));
    const pages = read.filter((page) => page[0]!.revision > 0);
    expect(pages.length).toBeGreaterThan(3);
    expect(held).toHaveLength(pages.length + 1);
    const isGrowing = held.slice(1, -1).every((bytes, at) => bytes > held[at]!);
    expect([isGrowing, held[0], held.at(-1)]).toEqual([true, totalBytesOf(pages[0]!), ofTurn]);
  });

  test('does not keep the stored form of its events', async () => {
    setFlagsFromString('--expose_gc');
    const collect = runInNewContext('gc') as () => void;
    const { read, source } = sessionWithLargeTurn(24);
    const stored: WeakRef<StoredEvent>[] = [];
    const alive: number[] = [];
    await readTurn(source, largeTurn, () => {
      stored.push(
        ...read
          .splice(0)
          .flat()
          .map((event) => new WeakRef(event)),
      );
      collect();
      alive.push(stored.filter((event) => event.deref()).length);
    });
    expect(stored.length).toBeGreaterThan(24);
    expect(Math.max(...alive)).toBeLessThan(18);
  });
});

test('an old turn is read within memory for its texts, before they are decrypted', async () => {
  const { source } = sessionWithLargeTurn(0, 10);
  const texts = { input: 'x'.repeat(1_000), output: 'y'.repeat(500), reasoning: null };
  const row = { ...largeTurn, status: 'completed', error: null, tool_calls: [], ...texts };
  const found = {
    session: largeTurn,
    turns: { rows: [row], more: false },
  };
  const readModels = { ...source.readModels, findTranscript: async () => found as never };
  const held: number[] = [];
  const reading = readTurn({ ...source, readModels }, largeTurn, (bytes) => {
    held.push(bytes);
    if (held.length === 2) throw new Error('needs memory');
  });
  await expect(reading).rejects.toThrow('needs memory');
  expect(held[1]).toBe(1_500);
});
