/** What tests do with each recipe of examples/: run it, see what it stored, and stand in its way. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createTestDatabase, execute } from '../../servers/postgres/postgresDatabase.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';
import type { RecipeEnvironment, StoredByRecipe } from './publishing.ts';
import { startRecipe, type RecipeProcess } from './recipeProcess.ts';
import { testSigningKeyFile } from '../../builders/signingKey.ts';

/** A recipe with a place of its own to store in. */
export interface Recipe {
  start: (env: RecipeEnvironment) => RecipeProcess;
  /** What it has stored, in the order in which it did. */
  stored: () => Promise<StoredByRecipe[]>;
  /** Lets it fail at the events of a key. */
  refuse: (key: string) => Promise<void>;
  allow: (key: string) => Promise<void>;
  /** Removes what it has stored of an event. */
  forget: (event: StoredByRecipe) => Promise<void>;
  /** The environment in which it begins again at the beginning. */
  rewound: (env: RecipeEnvironment) => Promise<RecipeEnvironment>;
  dispose: () => Promise<void>;
}

interface Row {
  id: string;
  key: string;
  revision: string | number;
  type: string;
  data: string;
}

const storedAs = ({ id, key, revision, type, data }: Row): StoredByRecipe => ({
  id,
  key,
  revision: Number(revision),
  type,
  data: JSON.parse(data),
});

/** Kafka keeps the offsets of a group, and has none of another one. */
const asAnotherGroup = async (env: RecipeEnvironment): Promise<RecipeEnvironment> => {
  return { ...env, KAFKA_GROUP: `${env.KAFKA_GROUP}.another` };
};

/** examples/python/consumer.py */
export async function pythonRecipe(python: string): Promise<Recipe> {
  const folder = await temporaryFolder();
  const file = join(folder, 'events.db');
  const withDatabase = async <Result>(
    work: (database: DatabaseSync) => Result,
  ): Promise<Result> => {
    const database = new DatabaseSync(file, { timeout: 5_000 });
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
  return {
    start: (env) => startRecipe(python, ['examples/python/consumer.py', file], { ...env }),
    stored: () =>
      withDatabase((database) => {
        const made = database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'events'`).get();
        if (!made) return [];
        const rows = database.prepare('SELECT * FROM events ORDER BY place').all();
        return (rows as unknown as Row[]).map(storedAs);
      }),
    refuse: (key) =>
      withDatabase((database) =>
        database.exec(
          `CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.key = '${key}'
           BEGIN SELECT RAISE(ABORT, 'refused'); END`,
        ),
      ),
    allow: () => withDatabase((database) => database.exec('DROP TRIGGER refuse')),
    forget: ({ id }) =>
      withDatabase((database) => database.exec(`DELETE FROM events WHERE id = '${id}'`)),
    rewound: asAnotherGroup,
    dispose: () => rm(folder, { recursive: true }),
  };
}

/** examples/java/Consumer.java */
export async function javaRecipe(jars: string): Promise<Recipe> {
  const folder = await temporaryFolder();
  const processes: RecipeProcess[] = [];
  const fileOf = ({ key, id }: { key: string; id: string }): string =>
    join(folder, key, `${id}.json`);
  return {
    start(env) {
      const program = ['-cp', jars, 'examples/java/Consumer.java', folder];
      const started = startRecipe('java', program, { ...env });
      processes.push(started);
      return started;
    },
    // It prints a line for each event that it has stored, and may do so again after a crash.
    async stored() {
      const lines = processes.flatMap(({ output }) => output().split('\n').slice(0, -1));
      const events = [...new Set(lines)].map((line) => {
        const [key = '', revision = '', type = '', id = ''] = line.split(' ');
        return { key, revision, type, id };
      });
      const kept = events.filter((event) => existsSync(fileOf(event)));
      return Promise.all(
        kept.map(async (event) =>
          storedAs({ ...event, data: await readFile(fileOf(event), 'utf8') }),
        ),
      );
    },
    // A folder can't be made where a file is.
    refuse: (key) => writeFile(join(folder, key), ''),
    allow: (key) => rm(join(folder, key)),
    forget: (event) => rm(fileOf(event)),
    rewound: asAnotherGroup,
    dispose: () => rm(folder, { recursive: true }),
  };
}

/** examples/python/into_postgres.py */
export async function postgresRecipe(python: string, serverUrl: string): Promise<Recipe> {
  const { url, drop } = await createTestDatabase(serverUrl);
  return {
    start: (env) =>
      startRecipe(python, ['examples/python/into_postgres.py'], {
        ...env,
        DATABASE_URL: url,
        LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      }),
    async stored() {
      const [made] = await execute(url, `SELECT to_regclass('turnlog_events') AS made`);
      if (made?.['made'] === null) return [];
      const rows = await execute(
        url,
        'SELECT id, key, revision, type, data::text FROM turnlog_events ORDER BY place',
      );
      return (rows as unknown as Row[]).map(storedAs);
    },
    async refuse(key) {
      await execute(
        url,
        `ALTER TABLE turnlog_events ADD CONSTRAINT refuse CHECK (key <> '${key}')`,
      );
    },
    async allow() {
      await execute(url, 'ALTER TABLE turnlog_events DROP CONSTRAINT refuse');
    },
    async forget({ id }) {
      await execute(url, `DELETE FROM turnlog_events WHERE id = '${id}'`);
    },
    async rewound(env) {
      await execute(url, 'UPDATE turnlog_places SET next_offset = 0');
      return env;
    },
    dispose: drop,
  };
}
