import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ATTACK_NAMES, ATTACKS, TOGETHER } from '../support/processes/hostile/attacks/index.ts';
import { MIX } from '../support/processes/hostile/attacks/random.ts';
import { tryMix } from '../support/processes/hostile/mix.ts';
import { size } from '../support/jest/size.ts';
import { tell, type Figures } from '../support/processes/hostile/figures.ts';
import { besiege, endSieges, SECONDS, type Siege } from '../support/processes/hostile/siege.ts';
import { makeWorld, type World } from '../support/processes/hostile/world.ts';
import { misfitIn } from '../support/stores/misfitIn.ts';

/** Before and after an attack there is as much to do again, at the most. */
const LIMIT_MS = 2 * SECONDS * 1_000 + 300_000;
/** However large the attacks are alone, together they are small ones. */
const AT_SMALL_SIZE = { TURNLOG_TEST_SIZE: 'small' };

/** Repeats the mixes of an earlier run, which printed it. */
const SEED = Number(process.env['TURNLOG_HOSTILE_SEED'] ?? size({ small: 2, full: Date.now() }));
const SEEDS = Array.from({ length: size({ small: 2, full: 10 }) }, (_, at) => SEED + at);
/** Smaller mixes that are tried when one fails, and how long each attacks. */
const SMALLER = { attempts: 8, seconds: size({ small: 2, full: 20 }) };
const MIXES_LIMIT_MS = LIMIT_MS + SMALLER.attempts * (SMALLER.seconds * 1_000 + 200_000);

const seen: Figures[] = [];
let world: World;

beforeAll(async () => {
  world = await makeWorld();
}, 1_800_000);
const told = (): string =>
  tell(seen, `Attacks of ${SECONDS} s against a heap of 256 MB, with ${world.sizes}`);
afterAll(async () => {
  process.stdout.write(`\n${told()}\n`);
  await endSieges();
  await world.close();
});

async function faultsOf(siege: Siege): Promise<string[]> {
  const figures = await besiege(world, siege);
  seen.push(figures);
  // An attack may take five minutes: what was seen so far can be read meanwhile.
  told();
  return figures.faults;
}

async function endure(siege: Siege): Promise<void> {
  expect(await faultsOf(siege)).toEqual([]);
}

test.each(ATTACK_NAMES.map((name) => [ATTACKS[name].what, name] as const))(
  'the service and the account beside bear %s',
  (_what, name) => endure({ names: [name] }),
  LIMIT_MS,
);

test(
  `the service and the account beside bear ${TOGETHER.length} attacks at once`,
  () => endure({ names: TOGETHER, attack: `${TOGETHER.length} at once`, env: AT_SMALL_SIZE }),
  LIMIT_MS,
);

test.each(SEEDS)(
  'the service and the account beside bear the random mix of TURNLOG_HOSTILE_SEED=%d',
  async (seed) => {
    const failed = await tryMix(seed, SMALLER.attempts, (mix, isSmaller) =>
      faultsOf({
        names: ['random'],
        attack: `mix of seed ${seed}`,
        env: { [MIX]: JSON.stringify(mix) },
        ...(isSmaller && { seconds: SMALLER.seconds }),
      }),
    );
    // The smallest mix that fails is printed.
    expect(failed).toBeUndefined();
  },
  MIXES_LIMIT_MS,
);

test('every event fits its hash chain after all that', async () => {
  expect(await misfitIn(world.env['DATA_DIR']!)).toBeUndefined();
}, 600_000);
