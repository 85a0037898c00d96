import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openNamedStore } from '../../services/compose/eventStore.ts';
import { createLogger } from '../../shared/logger.ts';
import { verifyChains } from '../../shared/queries/verifyChains.ts';
import { ATTACK_NAMES, ATTACKS } from '../support/hostile/attacks/index.ts';
import { tell, type Figures } from '../support/hostile/figures.ts';
import { besiege, SECONDS } from '../support/hostile/siege.ts';
import { makeWorld, type World } from '../support/hostile/world.ts';

/** Before and after an attack there is as much to do again, at the most. */
const LIMIT_MS = 2 * SECONDS * 1_000 + 300_000;
/** However large the attacks are alone, together they are small ones. */
const AT_SMALL_SIZE = { TURNLOG_TEST_SIZE: 'small' };

const seen: Figures[] = [];
let world: World;

beforeAll(async () => {
  world = await makeWorld();
}, 1_800_000);
afterAll(async () => {
  const heading = `Attacks of ${SECONDS} s against a heap of 256 MB, with ${world.sizes}`;
  process.stdout.write(`\n${tell(seen, heading)}\n`);
  await world.close();
});

test.each(ATTACK_NAMES.map((name) => [ATTACKS[name].what, name] as const))(
  'the service and the account beside bear %s',
  async (_what, name) => {
    const { figures, faults } = await besiege(world, { names: [name] });
    seen.push(figures);
    expect(faults).toEqual([]);
  },
  LIMIT_MS,
);

test(
  'the service and the account beside bear all of it at once',
  async () => {
    const { figures, faults } = await besiege(world, {
      names: ATTACK_NAMES,
      attack: 'all at once',
      env: AT_SMALL_SIZE,
    });
    seen.push(figures);
    expect(faults).toEqual([]);
  },
  LIMIT_MS,
);

test('every event fits its hash chain after all that', async () => {
  const store = await openNamedStore(world.env['DATA_DIR']!, createLogger('error'));
  const misfit = await verifyChains({
    store,
    after: undefined,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  await store.close();
  expect(misfit).toBeUndefined();
}, 600_000);
