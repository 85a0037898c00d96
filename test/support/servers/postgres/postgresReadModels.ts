import { openPostgresReadModels } from '../../../../infra/postgres/readModels/readModels.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import type { ReadModelsFixture } from '../../../contracts/readModels.ts';
import { createTestDatabase, type TestDatabase } from './postgresDatabase.ts';
import { openActive } from './postgresProjector.ts';

const LISTENING_MS = 10_000;

/** The same read models, of which every method first waits for `before`. */
const after = (readModels: ReadModels, before: () => Promise<unknown>): ReadModels =>
  new Proxy(readModels, {
    get:
      (target, name: keyof ReadModels) =>
      async (...parameters: unknown[]) => {
        await before();
        return (target[name] as (...given: unknown[]) => unknown)(...parameters);
      },
  });

async function openOn(database: TestDatabase): Promise<ReadModelsFixture> {
  const store = await openActive(database.url);
  const readModels = openPostgresReadModels({ databaseUrl: database.url });
  let announced: Promise<unknown> = Promise.resolve();
  let dropped: Promise<void> | undefined;
  const closeBoth = async (): Promise<void> => {
    await announced;
    await readModels.close();
    await store.close();
  };
  return {
    store,
    readModels: after(readModels, () => announced),
    // The store has told the position already; a wait for it shows that it was heard.
    announce(position, caughtUp) {
      const before = announced;
      announced = (async () => {
        await before;
        if (caughtUp) await store.complete();
        await readModels.untilShown(position, LISTENING_MS);
      })();
    },
    async reopen() {
      await closeBoth();
      return openOn(database);
    },
    async close() {
      await closeBoth();
      await (dropped ??= database.drop());
    },
  };
}

/** Both halves of the PostgreSQL read models over a database of their own. */
export const postgresReadModelsFixture = async (serverUrl: string): Promise<ReadModelsFixture> =>
  openOn(await createTestDatabase(serverUrl));
