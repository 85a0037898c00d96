import { expect, test } from '@jest/globals';
import { sharedTransparencyPart } from '../../../../../services/process/health/transparency.ts';
import type {
  TransparencyFinding,
  TransparencyLogHealth,
} from '../../../../../shared/health/health.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const STANDING_BY = { state: 'standing_by', size: null, lag_ms: null, signed_at: null } as const;
const ACTIVE = { state: 'active', size: 7, lag_ms: 0, signed_at: null } as const;
const witnesses = { wanted: 2, reached: 1, missing: ['w2'] };

/** A process over findings that others report; `reported` is what it reports itself. */
function openPart(own: TransparencyLogHealth, others: () => Promise<TransparencyFinding[]>) {
  const reported: unknown[] = [];
  const lines: object[] = [];
  const part = sharedTransparencyPart(
    { health: async () => ({ transparency_log: own }) },
    {
      async exchange(finding) {
        reported.push(finding);
        return others();
      },
      withdraw: async () => void reported.push('withdrawn'),
    },
    { warn: (fields: object) => void lines.push(fields) } as never,
  );
  const health = async () => (await part.health!()).transparency_log;
  return { part, reported, lines, health };
}

test('a process shows what another one reports, and its own findings first', async () => {
  const found: TransparencyFinding[] = [
    { trouble: 'It can not sign.', doubt: 'A witness.' },
    { witnesses: { ...witnesses, reason: 'Too few.' } },
  ];
  const own = { ...STANDING_BY, doubt: 'Another witness.' };
  const { part, reported, health } = openPart(own, async () => found);
  expect(await health()).toEqual(own);
  const polling = part.upkeep!();
  await eventually(health, (now) => now?.trouble !== undefined);
  expect(await health()).toEqual({
    ...own,
    trouble: 'It can not sign.',
    witnesses: found[1]!.witnesses,
  });
  expect(reported[0]).toEqual({ doubt: 'Another witness.' });
  // Withdrawn findings disappear.
  found.length = 0;
  await eventually(health, (now) => now?.trouble === undefined);
  expect(await health()).toEqual(own);
  await polling[Symbol.asyncDispose]();
  expect(reported.at(-1)).toBe('withdrawn');
});

test('a process without findings reports nothing, and those of others stay while they are unknown', async () => {
  let isAway = false;
  const { part, reported, lines, health } = openPart({ ...ACTIVE, witnesses }, async () => {
    if (isAway) throw storeUnavailableError('PostgreSQL is away.');
    return [{ doubt: 'A witness.' }];
  });
  await using _polling = part.upkeep!();
  await eventually(health, (now) => now?.doubt !== undefined);
  isAway = true;
  const count = reported.length;
  await eventually(
    async () => reported.length,
    (now) => now > count + 1,
  );
  expect(await health()).toEqual({ ...ACTIVE, witnesses, doubt: 'A witness.' });
  expect(reported.every((finding) => finding === undefined)).toBe(true);
  // The first failure is logged, and the next one after it has worked again.
  const line = { code: 'store_unavailable', reason: 'PostgreSQL is away.' };
  expect(lines).toEqual([line]);
  isAway = false;
  const failed = reported.length;
  await eventually(
    async () => reported.length,
    (now) => now > failed + 1,
  );
  isAway = true;
  await eventually(
    async () => lines.length,
    (now) => now > 1,
  );
  expect(lines).toEqual([line, line]);
});
