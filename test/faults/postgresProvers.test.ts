/** Provers of several processes on one database: killed, or frozen until another has their place. */
import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { openPostgresTileReader } from '../../infra/postgres/tiles/reader.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { makeSigningKey, readSigningKeys } from '../../services/compose/signingKeys.ts';
import { decodeEvent } from '../../shared/eventlog/codec.ts';
import { parseCheckpoint, type CheckpointText } from '../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../shared/transparency/tlog/leaf.ts';
import { openNote } from '../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../shared/transparency/tlog/noteKeys.ts';
import { consistencyProof } from '../../shared/transparency/tlog/proofs.ts';
import { readEntries } from '../../shared/transparency/tlog/readTiles.ts';
import { openRightEdge } from '../../shared/transparency/tlog/rightEdge.ts';
import { TILE_WIDTH } from '../../shared/transparency/tlog/tiles.ts';
import { verifyConsistency } from '../../shared/transparency/tlog/verify.ts';
import { size } from '../support/jest/size.ts';
import { createTestDatabase } from '../support/servers/postgres/postgresDatabase.ts';
import { appendSession, readLog } from '../support/servers/postgres/postgresFaults.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { contenders } from '../support/processes/contenders.ts';
import { eventually } from '../support/processes/operator.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { memoryTiles } from '../support/fakes/memoryTiles.ts';

const MAIN = fileURLToPath(
  new URL('../support/servers/postgres/postgresProverProcess.ts', import.meta.url),
);
const ROUNDS = size({ small: 4, full: 30 });
/** The checkpoint that is stored before the tree is declared, and never served. */
const EMPTY = { size: 0, root: createHash('sha256').digest() };
const server = await startPostgresServer();

if (server) {
  test(
    'whoever is killed or frozen, and goes on when another has its place, never takes a checkpoint back nor forks the tree',
    async () => {
      const database = await createTestDatabase(server.url);
      const folder = await temporaryFolder();
      const log = await openSqliteEventStore({ folder });
      const reader = openPostgresTileReader(database.url);
      const keyFile = join(folder, 'key.pem');
      makeSigningKey(keyFile);
      const [key] = readSigningKeys(keyFile);
      const provers = contenders([MAIN, folder, database.url, keyFile]);
      const { start, end, one } = provers;
      const state = { over: false, sessions: 0 };

      async function newest(): Promise<CheckpointText | undefined> {
        const note = await reader.readCheckpoint();
        if (note === undefined) return undefined;
        const signer = noteSigner(note.split('\n')[0]!, key!);
        return parseCheckpoint(openNote(note, [signer.key]).text);
      }
      const seen: CheckpointText[] = [];
      async function watch(): Promise<void> {
        while (!state.over) {
          const head = await newest();
          const last = seen.at(-1) ?? EMPTY;
          if (head && (head.size !== last.size || Buffer.compare(head.root, last.root) !== 0))
            seen.push(head);
          await sleep(10);
        }
      }
      async function write(): Promise<void> {
        while (!state.over) {
          await appendSession(log, (state.sessions += 1));
          await sleep(5);
        }
      }
      const grown = (): Promise<unknown> => {
        const before = seen.at(-1)?.size ?? 0;
        return eventually(
          async () => seen.at(-1)?.size ?? 0,
          (now) => now > before,
        );
      };

      start();
      start();
      const work = Promise.all([write(), watch()]);
      try {
        for (let round = 0; round < ROUNDS; round += 1) {
          await one('standing_by');
          const before = await one('active');
          await grown();
          // In whatever it is about.
          await sleep(Math.random() * 600);
          provers.told.set(before, 'frozen');
          if (round % 2 === 0) before.kill('SIGSTOP');
          else await end(before);
          await grown();
          // It goes on in the middle of what it was doing, and its tree is no longer the newest.
          if (round % 2 === 0) before.kill('SIGCONT');
          else start();
          await grown();
        }
        state.over = true;
        await work;
        const events = await readLog(log);
        await eventually(newest, (head) => head?.size === events.length);
        const head = (await newest())!;
        expect(seen.length).toBeGreaterThan(ROUNDS);
        for (const [at, checkpoint] of seen.entries()) {
          // No smaller one was served after it, and it continues those before.
          expect(checkpoint.size).toBeGreaterThan(seen[at - 1]?.size ?? 0);
          const proof = await consistencyProof(reader, checkpoint.size, head.size);
          expect(verifyConsistency(proof, checkpoint, head)).toBe(true);
        }
        const edge = await openRightEdge(memoryTiles(), 0);
        for (const [index, event] of events.entries())
          edge.append(leafEntry(decodeEvent(event).metadata.hash, index));
        expect(head.root).toEqual(edge.root());
        for (let bundle = 0; bundle * TILE_WIDTH < head.size; bundle += 1) {
          const entries = await readEntries(reader, bundle, head.size);
          const due = events
            .slice(bundle * TILE_WIDTH, (bundle + 1) * TILE_WIDTH)
            .map((event, at) =>
              leafEntry(decodeEvent(event).metadata.hash, bundle * TILE_WIDTH + at),
            );
          expect(entries.map(String)).toEqual(due.map(String));
        }
      } finally {
        state.over = true;
        await work;
        for (const prover of provers.told.keys()) await end(prover);
        await reader.close();
        await log.close();
        await rm(folder, { recursive: true });
        await database.drop();
        await server.close();
      }
    },
    ROUNDS * 30_000 + 60_000,
  );
} else {
  withoutPostgres('PostgreSQL provers');
}
