import { afterEach, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { DiffPart, TextPair } from '../../../../../shared/replays/comparison/textDiffer.ts';
import { withDiffs } from '../../../../../shared/replays/comparison/diffs.ts';
import type { ReplayTurnRow } from '../../../../../shared/readModels/tables.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

const { pageDiffMs, diffChars } = LIMITS.replays;

/** Of a turn without reasoning, tools and mistakes. */
const NOTHING = { reasoning: null, error: null, tool_calls: [] };

/** A replay of which each turn answered something else, and who reads it. */
function replayed(diffOf: (texts: TextPair) => Promise<DiffPart[] | undefined>, chars = 10) {
  const output = (sessionId: string, turn: number) =>
    `${sessionId === 'session_1' ? 'recorded' : 'replayed'} ${turn} `.padEnd(chars, 'a');
  const source = {
    store: { keys: memoryKeys().keys },
    differ: { diffOf },
    readModels: {
      findReplaySession: async () => ({ replay_session_id: 'session_2' }),
      findTranscript: async (
        _account: string,
        session_id: string,
        { after }: { after: number },
      ) => {
        const turn = after + 1;
        const row = { session_id, turn, input: 'input', output: output(session_id, turn) };
        const session = { session_id, account_id: 'acct_1', status: 'active' };
        return { session, turns: { rows: [{ ...row, ...NOTHING }], more: true } };
      },
    },
  };
  const rows = Array.from({ length: 4 }, (_, index) => ({
    replay_id: 'replay_1',
    session_id: 'session_1',
    turn: index + 1,
    comparison: { outcome: 'changed', replay_turn: index + 1 },
  })) as unknown as ReplayTurnRow[];
  return withDiffs(source as never, 'acct_1', { rows, more: false });
}

test('a changed turn is shown with what differs between the two outputs', async () => {
  const pairs: TextPair[] = [];
  const page = await replayed(async (texts) => {
    pairs.push(texts);
    return pairs.length === 2 ? undefined : [{ op: 'same', text: 'a' }];
  });
  expect(pairs[3]).toEqual({ recorded: 'recorded 4 ', replayed: 'replayed 4 ' });
  const found = { diff: [{ op: 'same', text: 'a' }] };
  const given = { diff_omitted: 'too_different' };
  expect(page.rows.map(({ difference }) => difference)).toEqual([found, given, found, found]);
  expect(page.more).toBe(false);
});

test('an output that is too long is not compared word by word', async () => {
  let asked = 0;
  const diffOf = async () => {
    asked += 1;
    return [];
  };
  const page = await replayed(diffOf, diffChars + 1);
  expect(page.rows[0]?.difference).toEqual({ diff_omitted: 'too_long' });
  expect(asked).toBe(0);
  expect((await replayed(diffOf, diffChars)).rows[0]?.difference).toEqual({ diff: [] });
});

test('a page ends with the turn whose comparison used up the time, and says that there are more', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const page = await replayed(async () => {
    now += pageDiffMs * 0.6;
    return [];
  });
  expect([page.rows.length, page.more]).toEqual([2, true]);
});

test('a page ends before the turn whose pieces would not fit', async () => {
  const pieces = Array.from({ length: 20_000 }, () => ({ op: 'added', text: 'ab ' }) as const);
  const page = await replayed(async () => pieces);
  expect([page.rows.length, page.more]).toEqual([
    Math.floor(LIMITS.http.pageBytes / (20_000 * 35)),
    true,
  ]);
});
