/**
 * How long the first delta of a run takes from the model server to the client that streams it:
 * `node test/bench/streams.ts [--runs 300]`. Model server and client are in this process, so that one
 * clock tells both; the same delta straight from the model server is the baseline.
 */
import { rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { median } from './load.ts';
import { createAgent, KEY, prepareFolder, send, startTurnlog } from './turnlog.ts';

const BEFORE_FIRST_MS = 10;
const BETWEEN_MS = 2;
const DELTAS = 5;
const WARM_UP = 50;

const { values } = parseArgs({ options: { runs: { type: 'string', default: '300' } } });
const runs = Number(values.runs);

let saidAt = 0;
const event = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'bench', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
async function speak(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  await sleep(BEFORE_FIRST_MS);
  saidAt = performance.now();
  response.write(event({ content: 'first ' }));
  for (let delta = 1; delta < DELTAS; delta += 1) {
    await sleep(BETWEEN_MS);
    response.write(event({ content: 'more ' }));
  }
  response.end(`${event({}, 'stop')}data: [DONE]\n\n`);
}
const model = createServer((request, response) => {
  request.resume();
  request.once('end', () => void speak(response));
});
await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
const modelUrl = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`;

/** Milliseconds from the model's first word to its arrival. */
async function firstDelta(url: string, headers: Record<string, string>, body: object) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  let took: number | undefined;
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>)
    if (took === undefined && Buffer.from(bytes).includes('first '))
      took = performance.now() - saidAt;
  if (took === undefined) throw new Error(`no delta came: status ${response.status}`);
  return took;
}

const folder = await prepareFolder(modelUrl);
const service = await startTurnlog(folder);
const { agent_id } = await send(service.url, createAgent('bench'));
const ours: number[] = [];
const direct: number[] = [];
for (let run = -WARM_UP; run < runs; run += 1) {
  const headers = { 'x-api-key': KEY, accept: 'text/event-stream' };
  const one = await firstDelta(`${service.url}/v1/agents/${agent_id}/run`, headers, {
    input: 'hi',
  });
  const other = await firstDelta(`${modelUrl}/chat/completions`, {}, { model: 'bench' });
  if (run < 0) continue;
  ours.push(one);
  direct.push(other);
}
const p99 = ours.toSorted((a, b) => a - b)[Math.floor(runs * 0.99)]!;
process.stdout.write(
  `first delta of ${runs} runs, from the model's write to the client: p50 ${median(ours).toFixed(2)} ms, p99 ${p99.toFixed(2)} ms; straight from the model server p50 ${median(direct).toFixed(2)} ms; bar ≤ 2 ms (p50) more than that\n`,
);
await service.stop();
model.closeAllConnections();
model.close();
await rm(folder, { recursive: true });
