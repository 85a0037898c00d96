/** The recipes of examples/, as real processes on a real broker, compared with the log. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, jest, test } from '@jest/globals';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { size } from '../../support/jest/size.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import {
  jarsOfRecipe,
  orSkip,
  pythonOfRecipes,
} from '../../support/processes/recipes/installed.ts';
import {
  byKey,
  preparePublishing,
  type RecipeEnvironment,
  type StoredByRecipe,
} from '../../support/processes/recipes/publishing.ts';
import {
  javaRecipe,
  postgresRecipe,
  pythonRecipe,
  type Recipe,
} from '../../support/processes/recipes/recipes.ts';
import type { RecipeProcess } from '../../support/processes/recipes/recipeProcess.ts';

jest.setTimeout(120_000);

const PYTHON = 'Install Python 3 with venv and pip, and a way to PyPI.';
const JAVA = 'Install Java 17 and Maven, and a way to Maven Central.';
// First what may throw with CI=true: no server is left running then.
const [python, jars] = await Promise.all([
  orSkip(pythonOfRecipes, PYTHON),
  orSkip(jarsOfRecipe, JAVA),
]);
const kafka = await startKafkaServer();
const postgres = await startPostgresServer();
if (!postgres) withoutPostgres('the recipe into PostgreSQL');

const KILLS = size({ small: 1, full: 10 });
/** The exit code of a JVM. */
const ENDED_BY_SIGTERM = 143;
afterAll(() => Promise.all([kafka?.close(), postgres?.close()]));

interface Listed {
  name: string;
  open: (() => Promise<Recipe>) | undefined;
}
const intoPostgres =
  python !== undefined && postgres ? () => postgresRecipe(python, postgres.url) : undefined;
const recipes: Listed[] = [
  { name: 'in Python', open: python === undefined ? undefined : () => pythonRecipe(python) },
  { name: 'in Java', open: jars === undefined ? undefined : () => javaRecipe(jars) },
  { name: 'into PostgreSQL', open: intoPostgres },
];

const closing: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Publishing = Awaited<ReturnType<typeof preparePublishing>>;

async function prepareLog(): Promise<Publishing> {
  const publishing = await preparePublishing(kafka!.brokers);
  closing.push(publishing.close);
  return publishing;
}

async function publish(): Promise<Publishing> {
  const publishing = await prepareLog();
  await publishing.start();
  return publishing;
}

async function prepare<Opened extends Recipe>(open: () => Promise<Opened>): Promise<Opened> {
  const recipe = await open();
  closing.push(recipe.dispose);
  return recipe;
}

function start(recipe: Recipe, env: RecipeEnvironment): RecipeProcess {
  const consumer = recipe.start(env);
  closing.push(() => consumer.end('SIGKILL'));
  return consumer;
}

/** Appends for longer than a consumer takes for a batch. */
async function appendSlowly({ append }: Publishing): Promise<void> {
  for (let step = 0; step < 40; step += 1) {
    await append(1);
    await sleep(50);
  }
}

/** Resolves when the recipe has stored at least these events. */
const untilStored = (
  { stored }: Recipe,
  consumer: RecipeProcess,
  events: ReadonlyMap<string, StoredByRecipe[]>,
): Promise<void> =>
  consumer.until(async () => {
    const ids = new Set((await stored()).map(({ id }) => id));
    return [...events.values()].flat().every(({ id }) => ids.has(id));
  });

for (const { name, open } of recipes)
  (kafka && open ? describe : describe.skip)(`the recipe ${name}`, () => {
    test(
      'has each event once and in the order of its key, and nothing that was aborted, although it was killed',
      async () => {
        const publishing = await prepareLog();
        const recipe = await prepare(open!);
        // The first one has to wait for the topics.
        let killed = start(recipe, publishing.env);
        await publishing.append(5);
        await publishing.start();
        await publishing.abortSome();
        let before = 0;
        for (let kill = 0; kill < KILLS; kill += 1) {
          if (kill > 0) killed = start(recipe, publishing.env);
          const more = appendSlowly(publishing);
          await killed.until(async () => (await recipe.stored()).length > before);
          expect(await killed.end('SIGKILL')).toBeNull();
          before = (await recipe.stored()).length;
          await more;
        }
        expect(before).toBeLessThan([...(await publishing.published()).values()].flat().length);

        const last = start(recipe, publishing.env);
        await untilStored(recipe, last, await publishing.published());
        expect(byKey(await recipe.stored())).toEqual(await publishing.published());
      },
      KILLS * 120_000,
    );

    test('gets an event again that it could not store, none from before, and stores none twice', async () => {
      const publishing = await publish();
      const recipe = await prepare(open!);
      await publishing.append(6);
      const before = await publishing.published();
      const failing = start(recipe, publishing.env);
      await untilStored(recipe, failing, before);
      await recipe.refuse('session_7');
      await publishing.append(2);
      expect(await failing.exited).toBe(1);
      expect(failing.errors()).toMatch(/refuse|session_7/);
      expect(byKey(await recipe.stored()).has('session_7')).toBe(false);

      // What it went past once does not come back: it goes on where it was.
      const forgotten = before.get('agent_0')!.at(-1)!;
      await recipe.forget(forgotten);
      await recipe.allow('session_7');
      const second = start(recipe, publishing.env);
      const whole = await publishing.published();
      const wanted = new Map(whole).set('agent_0', whole.get('agent_0')!.slice(0, -1));
      await untilStored(recipe, second, wanted);
      expect(byKey(await recipe.stored())).toEqual(wanted);
      expect([0, ENDED_BY_SIGTERM]).toContain(await second.end('SIGTERM'));

      // Given everything again, it takes what it does not have.
      const third = start(recipe, await recipe.rewound(publishing.env));
      await untilStored(recipe, third, whole);
      expect(byKey(await recipe.stored())).toEqual(whole);
    });
  });

const onPostgres = kafka && intoPostgres ? test : test.skip;

onPostgres(
  'the recipe into PostgreSQL has each event once and in order while two consumers read the same partitions',
  async () => {
    const publishing = await publish();
    const recipe = await prepare(intoPostgres!);
    await publishing.append(5);
    const first = start(recipe, publishing.env);
    await untilStored(recipe, first, await publishing.published());
    // Of another group, it is given every partition, too: as a consumer that lost its own unawares.
    const another = `${publishing.env.KAFKA_GROUP}.another`;
    const other = start(recipe, { ...publishing.env, KAFKA_GROUP: another });
    for (let round = 0; round < 5; round += 1) {
      await publishing.append(5);
      await untilStored(recipe, other, await publishing.published());
    }
    expect(byKey(await recipe.stored())).toEqual(await publishing.published());
  },
);
