/** Data folders with a log whose texts are protected, and its transparency log. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { makeSigningKey, readSigningKeys } from '../../../services/compose/signingKeys.ts';
import { systemClock } from '../../../services/compose/system.ts';
import { runProver } from '../../../services/followers/prover/run.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { commitEventTexts } from '../../../shared/eventlog/encryption/sealTexts.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { openProtectedStore } from '../stores/sqlite/sqliteEventStore.ts';
import { modelCall, sessionStarted, turnCompleted, turnStarted } from './events.ts';

/** What one append takes. */
const EVENTS_PER_APPEND = 100;
const SESSIONS_AT_ONCE = 100;

export interface ProofLog {
  folder: string;
  /** Of one of the sessions. */
  session_id: string;
}

interface Filled {
  sessions: number;
  turns: number;
}

function turnsOf(turns: number): DomainEvent[] {
  const ofTurn = (turn: number): DomainEvent[] => [
    turnStarted(turn, { input: 'What is the answer?' }),
    turnCompleted(turn, { output: 'The answer of the scripted model.', calls: [modelCall] }),
  ];
  const numbers = Array.from({ length: turns }, (_, index) => index + 1);
  return [sessionStarted('agent_bench'), ...numbers.flatMap(ofTurn)];
}

/** One session, as the service writes it. */
async function fillSession(store: ProtectedStore, turns: number): Promise<string> {
  const session_id = typeIds.typeId('session');
  const stream = sessionStream(session_id);
  const recorded_at = new Date().toISOString();
  const authorship = { account_id: 'acct_bench', key_id: 'bench', request_id: 'bench' };
  const all = turnsOf(turns).map((event) => ({ id: typeIds.uuid(), ...event }));
  let head = NO_STREAM;
  for (let from = 0; from < all.length; from += EVENTS_PER_APPEND) {
    const events = all.slice(from, from + EVENTS_PER_APPEND);
    const sealed = await commitEventTexts(store.keys, head.key, events);
    const written = { ...authorship, causation_id: 'bench', recorded_at };
    const chained = chainEvents(stream, head, sealed.events, written);
    await store.append(stream, head.revision < 0 ? 'no_stream' : head.revision, chained.encoded);
    head = { ...chained.head, key: sealed.key };
  }
  return session_id;
}

/** Gives each event its leaf, and signs. */
async function prove(log: EventStore, folder: string, leaves: number): Promise<void> {
  const keyFile = join(folder, 'log-signing-key.pem');
  makeSigningKey(keyFile);
  const done = new AbortController();
  const quiet = (): void => undefined;
  const fail = (_fields: object, message: string): void => {
    throw new Error(message);
  };
  await runProver({
    log,
    followed: log,
    acquireLeadership: async () => ({
      ...openFileTileTrees(join(folder, 'tlog')),
      lost: new AbortController().signal,
      close: async () => undefined,
    }),
    origin: 'turnlog',
    signingKeys: () => readSigningKeys(keyFile),
    declareTree: async () => undefined,
    untilCompared: async () => undefined,
    witnesses: { wanted: 0, witnesses: [] },
    onReport: (report) => {
      if ('size' in report && report.size === leaves) done.abort();
    },
    onWitnesses: quiet,
    clock: systemClock,
    logger: { info: quiet, warn: fail, error: fail },
    signal: done.signal,
  });
}

/** A new data folder with so many sessions of so many turns. */
export async function makeProofLog({ sessions, turns }: Filled): Promise<ProofLog> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-proof-'));
  const store = await openProtectedStore({ folder });
  let session_id = '';
  for (let left = sessions; left > 0; left -= SESSIONS_AT_ONCE) {
    const some = Array.from({ length: Math.min(left, SESSIONS_AT_ONCE) }, () =>
      fillSession(store, turns),
    );
    session_id = (await Promise.all(some))[0]!;
  }
  await prove(store, folder, sessions * (2 * turns + 1));
  await store.close();
  return { folder, session_id };
}
