/**
 * How fast sessions are found by words, embedded: `node test/bench/search.ts [turns]`; a million turns,
 * unless told otherwise, of words as frequent as words are (Zipf), each text closed as the service
 * closes it. Bar: p95 ≤ 100 ms, printed over all, and over all but
 * words that no turn has together. Then how long an erasure of a long session, and of a
 * quarter of all others, holds the projector, and until their words are gone from the files.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { typeIds } from '../../infra/ids/typeIds.ts';
import { openSqliteKeyStore } from '../../infra/sqlite/keyStore/keyStore.ts';
import { generationFile } from '../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../infra/sqlite/readModels/readModels.ts';
import { startIndexer } from '../../services/followers/projector/indexTurns.ts';
import { formatEncryptedText } from '../../shared/eventlog/encryption/encryptedText.ts';
import { createKeyring } from '../../shared/eventlog/encryption/keyring.ts';
import { newMasterKey, parseMasterKeys } from '../../shared/eventlog/encryption/masterKeys.ts';
import { createTextEncrypter, commitText } from '../../shared/eventlog/encryption/protectedText.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { createProgressChannel } from '../../shared/projections/progress.ts';
import { findSessions, type SessionSearch } from '../../shared/search/searchSessions.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import { reached, recordHistory } from '../support/builders/history.ts';

const TURNS = Number(process.argv[2] ?? 1_000_000);
const [TURNS_OF_SESSION, WORDS] = [10, 50_000];
/** Of each 2,000 sessions, so that the turns of one are about as many as are looked at without the index. */
const AGENTS = Math.ceil(TURNS / TURNS_OF_SESSION / 2_000);
const [INPUT_WORDS, OUTPUT_WORDS] = [20, 80];
const SESSIONS_AT_ONCE = 200;
const TURNS_OF_LONG_SESSION = 2_000;
const ERASED_AT_ONCE = 10;
/** One session in so many is of an agent that has few, and one is erased. */
const [RARELY, ERASED] = [5_000, 4];
/** The words that are frequent: one agent never says them. */
const FREQUENT = 30;
const ROUNDS = 40;
const ACCOUNT = 'acct_1';
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** The word of a rank, from 1 on: short ones are frequent. */
const wordOf = (rank: number): string => `${rank.toString(36)}${'aeiou'[rank % 5]}n`;
const SUM = Math.log(WORDS) + 0.5772;
/** A rank: the one of 1 as often again as that of 2. */
const anyRank = (): number => Math.min(WORDS, Math.ceil(Math.exp(Math.random() * SUM - 0.5772)));
const text = (words: number, least: number): string =>
  Array.from({ length: words }, () => wordOf(least + anyRank())).join(' ');
/** Of each of two languages; a turn has some of one, and none of the other. */
const APART = 8;
const apart = (language: 'left' | 'right', some: number, share = 1): string =>
  Array.from({ length: some }, (_, n) => (Math.random() < share ? `${language}${n}` : '')).join(
    ' ',
  );
const between = (from: number, to: number): string =>
  wordOf(Math.floor(from + Math.random() * (to - from)));

const folder = await mkdtemp(join(tmpdir(), 'turnlog-search-'));
const keyStore = await openSqliteKeyStore({ folder });
const masterKeys = parseMasterKeys(newMasterKey(), 'bench');
const keys = createKeyring({
  store: keyStore,
  masterKeys,
  log: { readStream: async () => [] },
});
const store = await openSqliteProjectionStore({ folder });
const { record } = recordHistory();

/** A session that began so many milliseconds after the first one. */
async function session(afterMs: number, turns = TURNS_OF_SESSION): Promise<StoredEvent[]> {
  const id = typeIds.typeId('session');
  // Ids of a hundred sessions a second, as a busy service makes them.
  const ms = BEGAN + afterMs;
  const stream = `session-${id.slice(0, 8)}${timeOf(ms)}${id.slice(18)}`;
  const close = createTextEncrypter(await keys.issueKey(), stream);
  const closed = (words: number, more = ''): string => {
    const committed = commitText(`${text(words, least)} ${more}`);
    return formatEncryptedText(close(committed), committed.sha256);
  };
  const nth = afterMs / 10;
  const agent = nth % RARELY === 0 ? 'agent_rare' : `agent_${nth % AGENTS}`;
  const least = agent === 'agent_1' ? FREQUENT : 0;
  const recorded = { stream, account: ACCOUNT };
  return [
    record(recorded, sessionStarted(agent)),
    ...Array.from({ length: turns }, (_, n) => [
      record(recorded, turnStarted(n + 1, { input: closed(INPUT_WORDS) })),
      record(
        recorded,
        turnCompleted(n + 1, {
          output: closed(OUTPUT_WORDS, apart(n % 2 ? 'right' : 'left', APART, 0.6)),
        }),
      ),
    ]).flat(),
  ];
}
const BEGAN = Date.UTC(2026, 0, 1);
function timeOf(ms: number): string {
  let encoded = '';
  for (let rest = ms; encoded.length < 10; rest = Math.floor(rest / 32))
    encoded = '0123456789abcdefghjkmnpqrstvwxyz'[rest % 32]! + encoded;
  return encoded;
}

const file = generationFile(folder, store.generation);
const size = (): number => statSync(file).size + statSync(`${file}-wal`).size;
let applyingMs = 0;
let last = reached(record({ stream: 'account-none' }, sessionStarted()).position);
const streams: string[] = [];
for (let made = 0; made < TURNS / TURNS_OF_SESSION; made += SESSIONS_AT_ONCE) {
  const events: StoredEvent[] = [];
  for (let n = 0; n < SESSIONS_AT_ONCE; n += 1) {
    const recorded = await session((made + n) * 10);
    if ((made + n) % ERASED === 2) streams.push(recorded[0]!.stream);
    events.push(...recorded);
  }
  last = reached(events.at(-1)!.position);
  const begun = performance.now();
  await store.apply(events, last);
  applyingMs += performance.now() - begun;
}
const long = await session((TURNS / TURNS_OF_SESSION) * 10, TURNS_OF_LONG_SESSION);
last = reached(long.at(-1)!.position);
await store.apply(long, last);
const events = (TURNS / TURNS_OF_SESSION) * (1 + 2 * TURNS_OF_SESSION);
say(
  `${TURNS} turns: projected with ${Math.round((events * 1000) / applyingMs)} events/s, ${megabytes(size())}`,
);

const progress = createProgressChannel();
const readModels = openSqliteReadModels({ folder, progress });
progress.publish({
  position: last.position,
  caughtUp: true,
  keepsKnownRows: false,
  percent: 100,
  generation: store.generation,
});
const before = size();
const begun = performance.now();
const cpu = process.cpuUsage();
const indexer = startIndexer({
  store,
  forgetEveryMs: 0,
  keys,
  logger: {
    info: () => undefined,
    warn: (_, said) => say(said),
    error: (_, said) => say(said),
  },
});
indexer.onApplied(true);
for (;;) {
  if ((await readModels.countUnindexed()) === 0) break;
  await new Promise((resolve) => setTimeout(resolve, 200));
}
const tookMs = performance.now() - begun;
const { user, system } = process.cpuUsage(cpu);
say(
  `indexed: ${Math.round((TURNS * 1000) / tookMs)} turns/s (${Math.round((user + system) / TURNS)} µs of CPU a turn), ${megabytes(size() - before)} more`,
);

const frequent = () => between(1, FREQUENT);
const usual = () => between(100, 2_000);
const rare = () => between(20_000, WORDS);
const KINDS: Record<string, () => Partial<SessionSearch> & { q: string }> = {
  'one frequent word': () => ({ q: frequent() }),
  'two frequent words': () => ({ q: `${frequent()} ${frequent()}` }),
  'four frequent words': () => ({ q: [1, 2, 3, 4].map(frequent).join(' ') }),
  'one usual word': () => ({ q: usual() }),
  'two usual words': () => ({ q: `${usual()} ${usual()}` }),
  'four usual words': () => ({ q: [1, 2, 3, 4].map(usual).join(' ') }),
  'one rare word': () => ({ q: rare() }),
  'a rare and a frequent word': () => ({ q: `${rare()} ${frequent()}` }),
  'four rare words': () => ({ q: [1, 2, 3, 4].map(rare).join(' ') }),
  'a word that is nowhere': () => ({ q: 'nowhere' }),
  'a frequent word of one agent': () => ({ q: frequent(), agent_id: 'agent_0' }),
  'a frequent word of an agent that never says it': () => ({ q: frequent(), agent_id: 'agent_1' }),
  'two frequent words of it': () => ({ q: `${frequent()} ${frequent()}`, agent_id: 'agent_1' }),
  'a usual word of it': () => ({ q: usual(), agent_id: 'agent_1' }),
  'a frequent word of few sessions': () => ({ q: frequent(), agent_id: 'agent_rare' }),
  'a frequent word of no day': () => ({ q: frequent(), created_to: '2020-01-01T00:00:00.000Z' }),
  'a frequent word of no label': () => ({ q: frequent(), labels: [['no', 'such']] }),
  'a frequent word, oldest first': () => ({ q: frequent(), order: 'oldest' }),
  'a usual word of no agent': () => ({ q: usual(), agent_id: 'agent_none' }),
  'a frequent word of no agent': () => ({ q: frequent(), agent_id: 'agent_none' }),
};
/** What costs the most: each word is in many turns, and none has all of them. */
const APART_KINDS: typeof KINDS = {
  'a word and one that is in no turn with it': () => ({
    q: `${apart('left', 1)} ${apart('right', 1)}`,
  }),
  'three such and three': () => ({ q: `${apart('left', 3)} ${apart('right', 3)}` }),
  'eight such and eight': () => ({ q: `${apart('left', 8)} ${apart('right', 8)}` }),
};
const percentile = (values: number[], part: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0).toFixed(1);
let longestHeldMs = 0;
let heldMs = 0;
let heldSince = performance.now();
const holding = setInterval(() => {
  heldMs = Math.max(heldMs, performance.now() - heldSince - 5);
  heldSince = performance.now();
}, 5);
const seen: { kind: string; took: number[]; computed: number[] }[] = [];
for (const [kind, make] of Object.entries({ ...KINDS, ...APART_KINDS })) {
  const took: number[] = [];
  const computed: number[] = [];
  let rows = 0;
  heldMs = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const asked = { limit: 100, bytes: LIMITS.http.pageBytes, ...make() };
    const from = performance.now();
    const cpuBefore = process.threadCpuUsage();
    rows += (await findSessions({ readModels, store: { keys } }, ACCOUNT, asked)).rows.length;
    took.push(performance.now() - from);
    computed.push(
      (process.threadCpuUsage(cpuBefore).user + process.threadCpuUsage(cpuBefore).system) / 1000,
    );
  }
  longestHeldMs = Math.max(longestHeldMs, heldMs);
  seen.push({ kind, took, computed });
  say(
    `${kind}: ${percentile(took, 0.5)} ms (p50), ${percentile(took, 0.95)} ms (p95), of that computed ${percentile(computed, 0.5)} and ${percentile(computed, 0.95)} ms; held for ${heldMs.toFixed(0)} ms at the longest; ${Math.round(rows / ROUNDS)} sessions`,
  );
}
clearInterval(holding);
for (const [what, some] of [
  ['all', seen],
  ['all but words apart', seen.filter(({ kind }) => kind in KINDS)],
] as const) {
  const took = some.flatMap((kind) => kind.took);
  const computed = some.flatMap((kind) => kind.computed);
  say(
    `${what}: ${percentile(took, 0.5)} ms (p50), ${percentile(took, 0.95)} ms (p95), of that computed ${percentile(computed, 0.5)} and ${percentile(computed, 0.95)} ms; bar ≤ 100 ms`,
  );
}
say(`the thread was held for ${longestHeldMs.toFixed(0)} ms at the longest`);

/** Erases sessions, a batch of the projector after the other, and waits until their words are gone. */
async function erase(what: string, erased: readonly string[]): Promise<void> {
  const from = performance.now();
  const held: number[] = [];
  for (let done = 0; done < erased.length; done += ERASED_AT_ONCE) {
    const batch = erased
      .slice(done, done + ERASED_AT_ONCE)
      .map((stream) => record({ stream, account: ACCOUNT }, sessionErased()));
    const since = performance.now();
    await store.apply(batch, reached(batch.at(-1)!.position));
    held.push(performance.now() - since);
  }
  const applied = performance.now();
  indexer.onApplied(true);
  // What is asked of the store meanwhile waits as long as the projector would.
  const waited: number[] = [];
  while (await readModels.holdsErased()) {
    const since = performance.now();
    await store.checkpoint();
    waited.push(performance.now() - since);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const ended = performance.now();
  say(
    `${what}: shown no more after ${Math.round(applied - from)} ms (a batch ${percentile(held, 0.5)} ms p50, ${percentile(held, 0.99)} ms p99, ${Math.max(...held).toFixed(0)} ms at the longest); its words gone after another ${((ended - applied) / 1000).toFixed(1)} s, meanwhile others waited ${percentile(waited, 0.5)} ms p50, ${percentile(waited, 0.99)} ms p99, ${Math.max(...waited).toFixed(0)} ms at the longest`,
  );
}
await erase(`a session of ${TURNS_OF_LONG_SESSION} turns`, [long[0]!.stream]);
await erase(`${streams.length} sessions of ${TURNS_OF_SESSION} turns`, streams);
await indexer[Symbol.asyncDispose]();
await readModels.close();
await store.close();
await keyStore.close();
await rm(folder, { recursive: true });
