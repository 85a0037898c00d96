import { copyFile, cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { expectFailure } from '../support/http/failures.ts';
import { apiClient, TEST_KEY, type Client } from '../support/http/service.ts';
import { size } from '../support/jest/size.ts';
import { asOperator, eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { DatabaseSync } from 'node:sqlite';

const CLIENTS = 16;
const BEFORE = size({ small: 200, full: 5_000 });
const AFTER_MS = size({ small: 500, full: 5_000 });

let folder: string;
let data: string;
let aside: string;
const servers: ServerProcess[] = [];

async function start(): Promise<{ server: ServerProcess; client: Client }> {
  const server = startServerProcess({
    DATA_DIR: data,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'info',
  });
  servers.push(server);
  return { server, client: apiClient(await server.ready, TEST_KEY) };
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-removed-'));
  data = join(folder, 'data');
  aside = join(folder, 'aside');
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.kill('SIGKILL');
    await server.exited;
  }
  await rm(folder, { recursive: true, force: true });
});

interface Write {
  beganAt: number;
  /** The agent's id, or the code of the failure. */
  made: string | undefined;
  refused: string | undefined;
  /** Answered 200 before the read models showed it: from then on queries wait for it. */
}

const createAgent = (client: Client) =>
  client.post('/v1/agents', { name: 'A', instruction: 'x', model: 'offline-echo' });

/** Writes from many clients until it is told that that was all. */
function startWriting(client: Client) {
  const writes: Write[] = [];
  const over = new AbortController();
  const writeOn = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const beganAt = performance.now();
      const { status, body } = await createAgent(client);
      writes.push({
        beganAt,
        made: body.data?.agent_id as string | undefined,
        refused: status === 200 ? undefined : `${status} ${body.code}`,
      });
      if (status !== 200) await sleep(20);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, writeOn));
  const made = (): string[] => writes.flatMap((write) => write.made ?? []);
  return {
    writes,
    made,
    end: () => {
      over.abort();
      return clients;
    },
  };
}

/** The agents in the log of a folder, as somebody finds them who starts anew with it. */
const agentsIn = (place: string): Promise<string[]> =>
  asOperator(place, async ({ store }) => {
    const found: string[] = [];
    for await (const batch of store.subscribe({
      batchSize: 1_000,
      signal: new AbortController().signal,
    })) {
      found.push(...batch.events.map(({ stream }) => stream.replace(/^agent-/, '')));
      if (batch.caughtUp) break;
    }
    return found;
  });

/** The same, of events.db alone. */
function agentsInFile(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const found = database.prepare('SELECT stream FROM events').all() as { stream: string }[];
    return found.map(({ stream }) => stream.replace(/^agent-/, ''));
  } finally {
    database.close();
  }
}

interface Change {
  /** Done under the running service. */
  change: () => Promise<unknown>;
  says: string;
  /** What may be refused beside the log: where its folder is gone, new keys of texts can't be kept. */
  refusedToo?: string;
  /** Where what was acknowledged must be found after a kill; undefined where it was thrown away. */
  keptIn?: () => Promise<string[]>;
}

const CHANGES: Record<string, Change> = {
  'its data folder is removed': {
    // The service writes tiles meanwhile, so that a folder may be no longer empty.
    change: () => rm(data, { recursive: true, maxRetries: 50, retryDelay: 5 }),
    says: 'events.db is gone',
    refusedToo: '503 store_unavailable',
  },
  'its data folder is moved away': {
    change: () => rename(data, aside),
    says: 'events.db is gone',
    refusedToo: '503 store_unavailable',
    keptIn: () => agentsIn(aside),
  },
  'events.db is replaced by a copy': {
    async change() {
      await copyFile(join(data, 'events.db'), aside);
      await rename(aside, join(data, 'events.db'));
    },
    says: 'events.db is another',
  },
  'the -wal is deleted': {
    change: () => rm(join(data, 'events.db-wal')),
    says: 'events.db-wal is gone',
    async keptIn() {
      // Of the file alone: no -wal is there that could hold anything.
      await copyFile(join(data, 'events.db'), aside);
      return agentsInFile(aside);
    },
  },
};

test.each(Object.entries(CHANGES))(
  'when %s under a running service, nothing is acknowledged any more, and health says why',
  async (_, { change, says, refusedToo, keptIn }) => {
    const { server, client } = await start();
    const writing = startWriting(client);
    await eventually(
      async () => writing.made().length,
      (made) => made >= BEFORE,
    );
    await change();
    const changedAt = performance.now();
    const health = expectFailure(await client.get('/health/ready'), 'store_unavailable');
    expect(health.error).toContain(says);
    await sleep(AFTER_MS);
    await writing.end();

    const later = writing.writes.filter(({ beganAt }) => beganAt > changedAt);
    expect(later.length).toBeGreaterThan(0);
    const refusals = new Set(later.map(({ refused }) => refused));
    if (refusedToo !== undefined) refusals.delete(refusedToo);
    expect(refusals).toEqual(new Set(['503 log_changed']));
    const refused = await createAgent(client);
    if (`${refused.status} ${refused.body.code}` !== refusedToo)
      expect(expectFailure(refused, 'log_changed').error).toContain(says);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // What is shown is still answered, unless a write was answered that is not shown and never will be.
    const list = await client.get('/v1/agents?limit=1');
    if (list.status !== 200) expectFailure(list, 'store_unavailable');
    await eventually(
      async () => server.errors(),
      (log) => log.includes(says),
    );

    if (keptIn) {
      const made = writing.made();
      await eventually(keptIn, (kept) => new Set(made).isSubsetOf(new Set(kept)));
      server.kill('SIGKILL');
      await server.exited;
      expect(new Set(made).isSubsetOf(new Set(await keptIn()))).toBe(true);
    }
  },
);

test('a start whose data folder is gone says that its log is new', async () => {
  const first = await start();
  await createAgent(first.client);
  first.server.kill('SIGTERM');
  await first.server.exited;
  await rm(data, { recursive: true });
  const { server } = await start();
  expect(server.errors()).toContain('there was no event log in the data folder');
  server.kill('SIGTERM');
  await server.exited;
  expect((await start()).server.errors()).not.toContain('there was no event log');
});

test('of two servers of one folder, which was replaced under the first, only the second acknowledges, and the stop of the first takes nothing from it', async () => {
  const first = await start();
  await createAgent(first.client);
  await expect(start()).rejects.toThrow('Another Turnlog server is running');
  await cp(data, aside, { recursive: true });
  await rename(data, `${aside}-before`);
  await rename(aside, data);
  const second = await start();
  const writing = startWriting(second.client);
  await eventually(
    async () => writing.made().length,
    (made) => made >= 50,
  );
  expectFailure(await createAgent(first.client), 'log_changed');
  first.server.kill('SIGTERM');
  expect(await first.server.exited).toBe(0);
  await eventually(
    async () => writing.made().length,
    (made) => made >= 100,
  );
  await writing.end();
  second.server.kill('SIGKILL');
  await second.server.exited;
  expect(new Set(writing.writes.map(({ refused }) => refused))).toEqual(new Set([undefined]));
  expect(new Set(writing.made()).isSubsetOf(new Set(await agentsIn(data)))).toBe(true);
});

test('a server whose lock was deleted acknowledges nothing beside the one that took the folder', async () => {
  const first = await start();
  await createAgent(first.client);
  await rm(join(data, 'server.lock'));
  const second = await start();
  expect(expectFailure(await createAgent(first.client), 'log_changed').error).toContain(
    'server.lock',
  );
  expect((await createAgent(second.client)).status).toBe(200);
});
