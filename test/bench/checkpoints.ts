/**
 * How long an event waits for a checkpoint that covers it: `node test/bench/checkpoints.ts
 * [--checkout <another>]`. 64 connections run agents for 30 s; what the log and the checkpoint that is
 * served hold is looked at every 10 ms, so an event is taken to be 10 ms younger than it may be, at most.
 */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { applyLoad } from './load.ts';
import { startProcess } from './process.ts';
import { createAgent, KEY, prepareFolder, runAgent, send, startTurnlog } from './turnlog.ts';

const LOAD_MS = 30_000;
const LOOK_MS = 10;
const CONNECTIONS = 64;
const model = resolve(import.meta.dirname, 'processes/modelServer.ts');

/** The delays of all events up to the one that is covered, from when each was first seen. */
async function follow(service: string, data: string, over: () => boolean): Promise<number[]> {
  const log = new DatabaseSync(join(data, 'events.db'), { readOnly: true });
  const count = log.prepare('SELECT count(*) AS events FROM events');
  const seen: { events: number; at: number }[] = [];
  const delays: number[] = [];
  let known = 0;
  let last = 0;
  for (;;) {
    const ended = over();
    const { events } = count.get() as { events: number };
    const now = performance.now();
    if (events > last) seen.push({ events, at: now });
    last = events;
    const answer = await fetch(`${service}/v1/log/checkpoint`, { headers: { 'x-api-key': KEY } });
    const covered = answer.ok ? Number((await answer.text()).split('\n')[1]) : 0;
    const at = performance.now();
    while (seen[0] && seen[0].events <= covered) {
      const group = seen.shift()!;
      for (; known < group.events; known += 1) delays.push(at - group.at);
    }
    if (ended && seen.length === 0) break;
    await sleep(LOOK_MS);
  }
  log.close();
  return delays;
}

const { values } = parseArgs({ options: { checkout: { type: 'string' } } });
const models = await startProcess([model]);
const folder = await prepareFolder(models.line);
const service = await startTurnlog(folder, values.checkout && resolve(values.checkout));
const { agent_id } = await send(service.url, createAgent('bench'));
let ended = false;
const following = follow(service.url, join(folder, 'data'), () => ended);
const load = await applyLoad({
  url: service.url,
  connections: CONNECTIONS,
  milliseconds: LOAD_MS,
  call: () => runAgent(agent_id),
});
ended = true;
const delays = (await following).toSorted((a, b) => a - b);
const at = (share: number): string =>
  `${Math.round(delays[Math.min(delays.length - 1, Math.floor(delays.length * share))]!)} ms`;
process.stdout.write(
  `${delays.length} events under ${Math.round(load.perSecond)} runs/s (p50 ${load.p50.toFixed(1)} ms): from append to checkpoint p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} (bar: 1000 ms)\n`,
);
await service.stop();
await models.stop();
await rm(folder, { recursive: true });
