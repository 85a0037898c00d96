import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { startTestService, type TestService } from '../../support/http/service.ts';
import type { Script } from '../../support/fakes/scriptedModel.ts';
import {
  besides,
  createPlayer,
  nobodyBesides,
  type Player,
  type UsedCursor,
} from '../../support/http/isolation/player.ts';
import { beginnings, play, running, type Move } from '../../support/http/isolation/steps.ts';
import { size } from '../../support/jest/size.ts';
import { asOperator, clientWith, issueTo } from '../../support/processes/operator.ts';

const PLAYS = size({ small: 30, full: 1_500 });
const ACCOUNTS = 40;
/** A slow run holds its session for longer than another one waits for it. */
const [SLOW_MS, WAIT_MS] = [80, 20];

const script: Script = ({ messages }) => {
  const last = messages.at(-1)!;
  if (last.role === 'tool') return { text: `It is ${last.content}.` };
  if (last.content === 'fail') return { status: 400 };
  if (last.content === 'use the tool')
    return { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
  return { text: `re: ${last.content}`, delay_ms: last.content === 'slow' ? SLOW_MS : 0 };
};

/** One in which both accounts are, and one in which each is as if there were no other. */
let shared: TestService;
let alone: TestService;
/** Keys of accounts that have done nothing yet, by service. */
const unused = new Map<TestService, string[]>();

beforeAll(async () => {
  const env = { RUN_WAIT_MS: String(WAIT_MS) };
  [shared, alone] = await Promise.all([
    startTestService(script, env),
    startTestService(script, env),
  ]);
});
afterAll(() => Promise.all([shared.close(), alone.close()]));

/** Issues many at a time: an operator command takes longer than a play. */
async function newKeyOf(service: TestService): Promise<string> {
  const keys = unused.get(service) ?? [];
  unused.set(service, keys);
  if (keys.length === 0)
    await asOperator(service.folder, async (operator) => {
      for (let issued = 0; issued < ACCOUNTS; issued += 1) {
        const key = await issueTo(operator);
        keys.push(key.api_key);
        // What comes before it in the log is known before it.
        if (issued === ACCOUNTS - 1) await clientWith(service.url, key);
      }
    });
  return keys.shift()!;
}

const movesOf = (moves: readonly Move[], account: 0 | 1): Move[] =>
  moves.filter((move) => move.account === account);

interface Seen {
  answers: string[];
  /** For each cursor that was the other's: how many of the account's own ids come before it. */
  ranks: number[];
}

/** What two accounts see in one service, each taking its own steps one after the other. */
async function playTogether(moves: readonly Move[], together: boolean): Promise<Seen[]> {
  const used: UsedCursor[][] = [[], []];
  const players: Player[] = [];
  for (const account of [0, 1])
    players.push(
      createPlayer(
        shared.url,
        await newKeyOf(shared),
        besides(() => players[1 - account]!, used[account]!),
      ),
    );
  const take = async (steps: readonly Move[]): Promise<void> => {
    for (const { account, step } of steps) await players[account]!.take(step);
  };
  await Promise.all(together ? [take(movesOf(moves, 0)), take(movesOf(moves, 1))] : [take(moves)]);
  return Promise.all(
    players.map(async ({ answers, all }, account) => {
      const own = { agent: await all('agent'), session: await all('session') };
      const ranks = used[account]!.map(
        ({ kind, id }) => own[kind].filter((mine) => mine < id).length,
      );
      return { answers, ranks };
    }),
  );
}

/** What an account is answered where it takes its steps, and nobody else does anything. */
async function playAlone(steps: readonly Move[], ranks: readonly number[]): Promise<string[]> {
  const player: Player = createPlayer(
    alone.url,
    await newKeyOf(alone),
    nobodyBesides(() => player, ranks),
  );
  for (const { step } of steps) await player.take(step);
  return player.answers;
}

/** Chance alone seldom has one account name a session at the moment in which the other runs it. */
const whileTheOtherRuns = {
  together: true,
  moves: [
    ...beginnings,
    ...Array.from({ length: 6 }, () => running(0, 'own')),
    ...Array.from({ length: 30 }, () => running(1, 'other')),
  ],
};

const EXPECTED = [
  'create 200',
  'create 400',
  'get agent 200',
  'get agent 404',
  'list agents 200',
  'list agents 400',
  'list sessions 200',
  'read 200',
  'read 404',
  'run 200',
  'run 400',
  'run 404',
  'run 502',
  'look up 200',
  'send 405',
];

test(
  `in ${PLAYS} plays of two accounts, each is answered as if the other did not exist`,
  async () => {
    const reached = new Set<string>();
    await fc.assert(
      fc.asyncProperty(play, async ({ together, moves }) => {
        const seen = await playTogether(moves, together);
        for (const account of [0, 1] as const) {
          const { answers, ranks } = seen[account]!;
          expect(answers).toEqual(await playAlone(movesOf(moves, account), ranks));
          for (const answer of answers) reached.add(/^.+? \d{3}/.exec(answer)![0]);
        }
      }),
      { numRuns: PLAYS, seed: 20_261_122, endOnFailure: true, examples: [[whileTheOtherRuns]] },
    );
    // The generator gets to what there is to see, and to every kind of refusal.
    expect(EXPECTED.filter((kind) => !reached.has(kind))).toEqual([]);
  },
  size({ small: 180_000, full: 3_600_000 }),
);
