import { afterEach, expect, jest, test } from '@jest/globals';
import {
  encode,
  serializeSession,
  type ExportOptions,
} from '../../../../../services/api/exports/serialize.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { commitText } from '../../../../../shared/eventlog/encryption/protectedText.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { SLICE_CHARS } from '../../../../../shared/lib/slices.ts';
import { KIB } from '../../../../../shared/lib/units.ts';
import type { ReadOptions } from '../../../../../shared/ports/eventStore.ts';
import { sessionStarted, turnStartData } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

test('texts that take long to make, however short they are, leave time for other requests', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  let loopTurns = 0;
  const countTurns = (): void => {
    loopTurns += 1;
    counting = setImmediate(countTurns);
  };
  let counting = setImmediate(countTurns);
  const madeAt = new Set<number>();
  async function* slowTexts(): AsyncGenerator<string> {
    for (let text = 0; text < 12; text += 1) {
      now += 2;
      madeAt.add(loopTurns);
      yield `${text};`;
    }
  }
  let encoded = '';
  for await (const chunk of encode(slowTexts(), 'acct_1')) encoded += chunk.toString();
  clearImmediate(counting);
  expect(encoded).toBe('0;1;2;3;4;5;6;7;8;9;10;11;');
  expect(madeAt.size).toBeGreaterThanOrEqual(6);
});

test('a large event is written in slices, between which other requests have their turn', async () => {
  const stream = sessionStream('session_1');
  const key = { id: 'k'.repeat(16), secret: Buffer.alloc(32).toString('base64url') };
  const input = 'x'.repeat(300 * KIB);
  const text = commitText(input);
  const data = { turn: 1, ...turnStartData, input: { sha256: text.sha256 } };
  const { record } = recordHistory();
  const events = [
    record({ stream }, sessionStarted()),
    record({ stream }, { type: 'session.turn_started.v1', data, toClose: { texts: [text], key } }),
  ];
  const api = {
    store: {
      readStream: async (_stream: string, { from = 0, limit }: ReadOptions) =>
        events.slice(from, from + limit),
      keys: {
        find: async (ids: ReadonlySet<string>) => new Map([...ids].map((id) => [id, key])),
        isErased: () => false,
      },
    },
    damaged: createDamagedStreams(() => undefined),
    readModels: {
      findSession: async () => ({ session_id: 'session_1', account_id: 'acct_1', revision: 1 }),
    },
  } as unknown as ExportOptions['api'];
  const written = jest.spyOn(JSON, 'stringify');
  const options = { api, account_id: 'acct_1', format: 'events' } as const;
  let exported = '';
  for await (const chunk of serializeSession(options, 'session_1')) exported += chunk.toString();
  const lengths = written.mock.results.map(({ value }) => (value as string).length);
  expect(exported).toContain(input);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(2 * SLICE_CHARS);
});
