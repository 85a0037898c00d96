import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { withTextsForRows } from '../../../../../shared/eventlog/encryption/protectedStore.ts';
import { commitEventTexts } from '../../../../../shared/eventlog/encryption/sealTexts.ts';
import { fold, rowMaps, type RowMaps } from '../../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../../shared/projections/plan.ts';
import { readTranscript } from '../../../../../shared/sessions/history/transcript.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import type { TurnRow } from '../../../../../shared/readModels/tables.ts';
import {
  sessionErased,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

const STREAM = 'session-session_1';
const SECRET = 'what only its readers are to know';
/** What a text of a build that closed none may look like. */
const LIKE_CLOSED = `0123456789abcdef.AAAA~${'ab'.repeat(32)}`;

type Shape = { type: string; data: object };

const told = (text: string): Shape[] => [
  sessionStarted(),
  turnStarted(1, { input: text }),
  toolCalled(1, { arguments: text, content: text, result: text }),
  turnCompleted(1, { output: text }),
  turnStarted(2, { input: text }),
  turnFailed(2, { message: text }),
];

/** Rows as a projector makes them of a log. */
async function projected(
  { keys }: ReturnType<typeof memoryKeys>,
  log: readonly StoredEvent[],
): Promise<RowMaps> {
  const rows = rowMaps();
  async function* subscribe() {
    yield { events: [...log], caughtUp: true };
  }
  const followed = withTextsForRows(
    { ...memoryReads(log), subscribe } as never,
    keys,
  ) as unknown as {
    subscribe: (options: object) => AsyncIterable<{ events: StoredEvent[] }>;
  };
  for await (const { events } of followed.subscribe({}))
    expect(fold(planBatch(events), rows, new Set()).parked).toEqual([]);
  return rows;
}

/** A session in a log and in read models, and who reads its transcript. */
async function session(shapes: readonly Shape[], { closed = true } = {}) {
  const kept = memoryKeys();
  const history = recordHistory();
  const decided = shapes.map((shape) => ({ id: randomUUID(), ...shape }));
  const { events } = closed
    ? await commitEventTexts(kept.keys, undefined, decided)
    : { events: decided };
  const log = events.map((event) => history.record({ stream: STREAM }, event));
  const rows = await projected(kept, log);
  const damaged = createDamagedStreams(() => undefined);
  const read = async () => {
    const found = {
      session: rows.sessions.get('session_1')!,
      turns: { rows: [...rows.turns.values()], more: false },
    };
    // As a process that starts now.
    const store = { ...memoryReads(log), keys: kept.open() };
    const readModels = { findTranscript: async () => found, findSession: async () => undefined };
    const page = { limit: 9, bytes: 1_000_000 };
    return (await readTranscript({ store, damaged, readModels }, 'acct_1', 'session_1', page)).turns
      .rows;
  };
  const change = (turn: number, changes: Partial<TurnRow>): void => {
    const row = rows.turns.get(`session_1/${turn}`)!;
    rows.turns.set(`session_1/${turn}`, { ...row, ...changes });
  };
  const used = (): string[] => [...kept.kept.keys()].filter((id) => log[1]!.data.includes(id));
  return { log, rows, read, damaged, change, history, kept: kept.kept, used };
}

const texts = (text: string) => [
  {
    input: text,
    output: text,
    error: null,
    tool_calls: [{ arguments: text, content: text, result: text }],
  },
  { input: text, output: null, error: { message: text }, tool_calls: [] },
];

describe('a transcript', () => {
  test('has every text, and the rows that it is read from have none', async () => {
    const { rows, read } = await session(told(SECRET));
    expect(JSON.stringify([...rows.turns.values()])).not.toContain(SECRET);
    expect(await read()).toMatchObject(texts(SECRET));
  });

  test.each([
    ['any', SECRET],
    ['what looks closed', LIKE_CLOSED],
    ['what looks closed and marked', `~~${LIKE_CLOSED}`],
    ['JSON of what looks closed', `{"input":"${LIKE_CLOSED}"}`],
    ['what looks closed at its ends', `0123456789abcdef.A "\n\\~${'ab'.repeat(32)}`],
    ['half of it', `"${LIKE_CLOSED}`],
  ])('has texts of before as they were written: %s', async (_what, text) => {
    const { read, damaged, kept } = await session(told(text), { closed: false });
    expect(kept.size).toBe(0);
    expect(await read()).toMatchObject(texts(text));
    expect(damaged.count()).toBe(0);
  });

  test('has a text that looks closed also where it was closed', async () => {
    const { read } = await session(told(`~${LIKE_CLOSED}`));
    expect(await read()).toMatchObject(texts(`~${LIKE_CLOSED}`));
  });

  test.each<[string, (text: string, other: string) => string]>([
    ['a changed byte', (text) => text.replace(/....~/, 'AAAA~')],
    ['another text', (text, other) => `${other.split('~')[0]}~${text.split('~')[1]}`],
    ['nothing', (text) => `${text.slice(0, 17)}A${text.slice(-65)}`],
  ])('whose box holds %s is damaged, and health says so', async (_what, changed) => {
    const { rows, read, change, damaged } = await session(told(SECRET));
    const [one, two] = [...rows.turns.values()];
    change(1, { input: changed(one!.input, two!.input) });
    await expect(read()).rejects.toMatchObject({ code: 'stream_damaged' });
    expect(damaged.list()).toMatchObject([{ stream: STREAM }]);
  });

  test('whose key is destroyed is damaged where no erasure says so', async () => {
    const { read, damaged, kept, used } = await session(told(SECRET));
    for (const id of used()) kept.set(id, 'destroyed');
    await expect(read()).rejects.toMatchObject({ code: 'stream_damaged' });
    expect(damaged.list()).toMatchObject([
      { stream: STREAM, reason: expect.stringContaining('destroyed') },
    ]);
  });

  test('whose key is destroyed is erased where the log says so before the read models do', async () => {
    const { read, damaged, kept, used, log, history } = await session(told(SECRET));
    for (const id of used()) kept.set(id, 'destroyed');
    log.push(history.record({ stream: STREAM }, sessionErased()));
    await expect(read()).rejects.toMatchObject({ code: 'session_erased' });
    expect(damaged.count()).toBe(0);
  });

  test('whose key was lost says so, and so does health', async () => {
    const { read, damaged, kept, used } = await session(told(SECRET));
    const [id] = used();
    kept.delete(id!);
    await expect(read()).rejects.toMatchObject({ code: 'key_missing' });
    expect(damaged.list()).toMatchObject([
      { stream: STREAM, reason: expect.stringContaining(id!) },
    ]);
  });
});
