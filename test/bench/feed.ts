/**
 * How fast one who follows an account catches up, and what 200 followers take: catch-up of one and
 * of all, and events that come while all of them are live. Bars: 10,000 events a second, and memory
 * that stays as it is while they follow.
 *
 *     node --expose-gc test/bench/feed.ts [<events of the account>]
 */
import { rmSync } from 'node:fs';
import { createAccountFeed, type AccountFeed } from '../../shared/feed/accountFeed.ts';
import { feedWriter, taken } from '../support/builders/feedLog.ts';
import { openProtectedStore, temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { unlimitedFeedMemory } from '../support/builders/memory.ts';

const OWN = Number(process.argv[2] ?? 50_000);
const FOLLOWERS = 200;
const LIVE = 50;
const TEXT = 'What is the weather like in the mountains today? '.repeat(4);

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function residentMb(): number {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().rss / 2 ** 20);
}

/** Events a second of so many followers that read all of an account's events. */
async function catchUp(feed: AccountFeed, followers: number): Promise<number> {
  const began = performance.now();
  let events = 0;
  await Promise.all(
    Array.from({ length: followers }, async () => {
      const options = {
        from: 'start' as const,
        memory: unlimitedFeedMemory,
        signal: new AbortController().signal,
      };
      for await (const page of feed.followAccount('acct_own', options)) {
        events += page.items.length;
        if (page.caughtUp) break;
      }
    }),
  );
  return events / ((performance.now() - began) / 1_000);
}

const folder = await temporaryFolder();
const store = await openProtectedStore({ folder });
const writer = feedWriter(store);
for (let written = 0; written < OWN; written += 500) {
  await writer.turns('acct_own', 500, TEXT);
  await writer.turns('acct_other', 500, TEXT);
}
const feed = createAccountFeed(store);
say(`${OWN} events of the account, as many of another one`);
const one = await catchUp(feed, 1);
say(`catch-up of one follower: ${Math.round(one)} events/s`);
const before = residentMb();
const all = await catchUp(feed, FOLLOWERS / 10);
say(`catch-up of ${FOLLOWERS / 10} at a time: ${Math.round(all)} events/s together`);
const between = residentMb();
const following = Array.from({ length: FOLLOWERS }, () =>
  taken(feed, 'acct_own', { from: 'now', count: 2 * LIVE }),
);
await taken(feed, 'acct_own', { from: 'now' });
const live = residentMb();
const began = performance.now();
for (let written = 0; written < 2 * LIVE; written += 1) await writer.turns('acct_own', 1, TEXT);
await Promise.all(following);
const seconds = (performance.now() - began) / 1_000;
say(`${FOLLOWERS} live: ${Math.round((FOLLOWERS * 2 * LIVE) / seconds)} events/s handed over`);
say(
  `resident: ${before} MB before, ${between} MB after catching up, ${live} MB with ${FOLLOWERS} live, ${residentMb()} MB after`,
);
await feed[Symbol.asyncDispose]();
await store.close();
rmSync(folder, { recursive: true });
