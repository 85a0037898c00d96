/**
 * The trouble that the store reports while it can't be used. Health repeats it, so it must name the
 * cause.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { copyFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import {
  newEvents,
  newStream,
  refusedWith,
  untilAnswered,
} from '../../contracts/eventStore/support.ts';
import {
  startEventStoreDbCluster,
  startEventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient } from '../../support/http/service.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { CERTIFICATE_FILE, OTHER_CERTIFICATE_FILE } from '../../support/servers/tls/files.ts';

const cleanups: Array<() => unknown> = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function folder(): Promise<string> {
  const path = await temporaryFolder();
  cleanups.push(() => rm(path, { recursive: true }));
  return path;
}

async function open(connectionString: string): Promise<{ store: EventStore; lines: string[] }> {
  const lines: string[] = [];
  const store = await openEventStoreDb({
    connectionString,
    logger: { warn: (_, message) => void lines.push(message) },
  });
  cleanups.push(store.close);
  return { store, lines };
}

async function startNode(options: Partial<Parameters<typeof startEventStoreDbNode>[0]> = {}) {
  const node = await startEventStoreDbNode({ folder: await folder(), ...options });
  cleanups.push(node.close);
  return node;
}

/** A listener that is not an event store. Counts its connections. */
async function listen(
  onConnection: (server: Server) => void = () => undefined,
): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    cleanups.push(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  onConnection(server);
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

const untilTrouble = (store: EventStore, pattern: RegExp): Promise<string | undefined> =>
  eventually(
    () => Promise.resolve(store.trouble()),
    (trouble) => pattern.test(trouble ?? ''),
  );

describe('a store that acknowledges an append beyond the end of its log', () => {
  test.each([
    ['far beyond', 2n ** 63n - 1n],
    ['at no position', 2n ** 64n - 1n],
  ])(
    '%s is refused and reported, and followers and later appends go on',
    async (_what, position) => {
      const node = await startNode();
      const { store, lines } = await open(node.connectionString);
      const { perform } = node.log;
      node.log.perform = (operation) => ({ ...perform(operation), position }) as never;
      const events = newEvents(1);
      const stream = newStream();
      const sentence = `The event store acknowledged an append at ${position}/${position}, which lies beyond the end of its log.`;
      const padded = sentence.replaceAll(String(position), String(position).padStart(20, '0'));
      await expect(store.append(stream, 'no_stream', events)).rejects.toMatchObject({
        code: 'store_unavailable',
        message: padded,
      });
      expect([store.trouble(), lines]).toEqual([padded, [padded]]);
      node.log.perform = perform;
      expect(await store.append(stream, 'no_stream', events)).toMatchObject({ revision: 0 });
      const { signal } = new AbortController();
      for await (const batch of store.subscribe({ batchSize: 10, signal }))
        if (batch.caughtUp) break;
      // Another answer does not end the report.
      expect(store.trouble()).toBe(padded);
    },
  );
});

describe('an unusable store reports the reason', () => {
  test('when no process listens, and that it can be used again when one does', async () => {
    const node = await startNode();
    await node.stop();
    const { store, lines } = await open(node.connectionString);
    await untilTrouble(store, /refuses connections/);
    await node.start();
    await untilAnswered(() => store.head());
    expect(store.trouble()).toBeUndefined();
    expect(lines).toEqual([
      expect.stringMatching(/refuses connections/),
      'the event store can be used again',
    ]);
  });

  test('when the host has no address', async () => {
    const { store } = await open('esdb://no-such-host.invalid:2113?tls=false');
    await untilTrouble(
      store,
      /The host of the event store no-such-host\.invalid:2113 is not found/,
    );
  });

  test('when the certificate is not trusted, naming the trusted one and the option', async () => {
    const node = await startNode({ tls: true });
    const { store } = await open(
      node.connectionString.replace(
        /tlsCAFile=.*/,
        `tlsCAFile=${encodeURIComponent(OTHER_CERTIFICATE_FILE)}`,
      ),
    );
    const trouble = await untilTrouble(store, /certificate/);
    expect(trouble).toContain(
      `(self-signed certificate): the certificates in ${OTHER_CERTIFICATE_FILE} are trusted; set tlsCAFile in EVENTSTOREDB_URL`,
    );
  });

  test('when the URL names no user, but the node has users', async () => {
    const node = await startNode({ tls: true, credentials: 'admin:changeit' });
    const { store } = await open(node.connectionString.replace('admin:changeit@', ''));
    await untilTrouble(store, /asks for a user: add one to EVENTSTOREDB_URL/);
  });

  test('when the file of the trusted certificate is removed at run time, without a busy loop', async () => {
    const node = await startNode({ tls: true });
    const trusted = join(await folder(), 'ca.pem');
    await copyFile(CERTIFICATE_FILE, trusted);
    const { store } = await open(
      node.connectionString.replace(/tlsCAFile=.*/, `tlsCAFile=${encodeURIComponent(trusted)}`),
    );
    await store.head();
    await rm(trusted);
    await node.stop();
    await untilTrouble(store, /names a missing file/);
    await node.start();
    const before = process.cpuUsage();
    await sleep(2_000);
    const { user, system } = process.cpuUsage(before);
    expect(user + system).toBeLessThan(1_000_000);
    await copyFile(CERTIFICATE_FILE, trusted);
    await untilAnswered(() => store.head());
  });

  test('when only one side uses TLS', async () => {
    const node = await startNode();
    const { store } = await open(node.connectionString.replace('tls=false', 'tls=true'));
    await untilTrouble(store, /does not speak TLS: .* add tls=false to EVENTSTOREDB_URL\.$/);
    const secured = await startNode({ tls: true });
    const { store: other } = await open(`esdb://127.0.0.1:${secured.port}?tls=false`);
    await untilTrouble(other, /It seems to expect TLS: remove tls=false from EVENTSTOREDB_URL\.$/);
  });

  test('when the password is wrong', async () => {
    const node = await startNode({ tls: true, credentials: 'admin:changeit' });
    const { store, lines } = await open(node.connectionString.replace('changeit', 'a-guess'));
    const trouble = await untilTrouble(
      store,
      /refuses the user or the password|does not let this user read/,
    );
    expect(trouble).not.toContain('a-guess');
    await refusedWith('store_unavailable', store.append(newStream(), 'no_stream', newEvents(1)));
    expect(lines).toHaveLength(1);
  });

  test('when connections are accepted but not answered', async () => {
    const { port } = await listen();
    const { store } = await open(`esdb://127.0.0.1:${port}?tls=false`);
    await untilTrouble(store, /takes connections, but does not answer/);
  });

  test('when a node freezes, within two seconds, and resumes when it wakes', async () => {
    const node = await startNode();
    const { store } = await open(node.connectionString);
    await store.head();
    const began = performance.now();
    node.faults.silent = true;
    await untilTrouble(store, /takes connections, but does not answer/);
    // A busy machine takes longer; without the heartbeat a call would take its deadline of 10 s.
    expect(performance.now() - began).toBeLessThan(8_000);
    node.faults.silent = false;
    await eventually(
      () => Promise.resolve(store.trouble()),
      (trouble) => trouble === undefined,
    );
    await store.append(newStream(), 'no_stream', newEvents(1));
  });

  test('when a cluster has no leader, or no quorum', async () => {
    const cluster = await startEventStoreDbCluster({ folder: await folder(), size: 3 });
    cleanups.push(cluster.close);
    cluster.elect(-1);
    const { store } = await open(cluster.connectionString);
    await untilTrouble(store, /has no leader at the moment/);
    await cluster.nodes[1]!.stop();
    await cluster.nodes[2]!.stop();
    await untilTrouble(store, /has no quorum: only 1 of its 3 nodes/);
    await cluster.nodes[1]!.start();
    cluster.elect(1);
    await untilAnswered(() => store.head());
    expect(store.trouble()).toBeUndefined();
  });
});

test('a slow store is waited for, and logs no trouble', async () => {
  const node = await startNode();
  node.faults.delayMs = 500;
  const { store, lines } = await open(node.connectionString);
  await store.head();
  expect(lines).toEqual([]);
});

describe('attempts', () => {
  test('back off: connections to an unusable host become less frequent', async () => {
    const { port, connections } = await listen((server) =>
      server.on('connection', (socket) => socket.destroy()),
    );
    await open(`esdb://127.0.0.1:${port}?tls=true`);
    await sleep(4_000);
    // At 0, 0.25, 0.75, 1.75 and 3.75 s at the earliest; six a second would be 24.
    expect(connections()).toBeLessThanOrEqual(10);
    expect(connections()).toBeGreaterThan(2);
  });
});

describe('several hosts', () => {
  test.each(['esdb', 'esdb+discover'])(
    '%s:// finds the cluster although the first host is down',
    async (scheme) => {
      const cluster = await startEventStoreDbCluster({ folder: await folder(), size: 3 });
      cleanups.push(cluster.close);
      const hosts = [
        `127.0.0.1:${await freePort()}`,
        ...cluster.nodes.slice(1).map(({ port }) => `127.0.0.1:${port}`),
      ];
      const { store } = await open(`${scheme}://${hosts.join(',')}?tls=false`);
      await store.append(newStream(), 'no_stream', newEvents(1));
      await cluster.nodes[0]!.stop();
      cluster.elect(2);
      await store.append(newStream(), 'no_stream', newEvents(1));
    },
  );
});

describe('a connection string', () => {
  test.each([
    [
      'a missing file',
      'esdb://127.0.0.1:2113?tlsCAFile=/nowhere/ca.crt',
      /names the file \/nowhere\/ca\.crt, which does not exist/,
    ],
    ['an invalid port', 'esdb://127.0.0.1:port?tls=false', /names the host "127\.0\.0\.1:port"/],
    ['an unknown preference', 'esdb://127.0.0.1?nodePreference=best', /nodePreference/],
    [
      'an option with an invalid number',
      'esdb://admin:secret@127.0.0.1?defaultDeadline=soon',
      /an option that its client does not accept/,
    ],
  ])('with %s is rejected with its name', async (_, connectionString, message) => {
    const opening = openEventStoreDb({ connectionString });
    await refusedWith('configuration_invalid', opening);
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.not.toThrow(/secret/);
  });
});

describe('a service that waits for its event store', () => {
  test('reports the cause on /health/ready from the first failed attempt on, and logs it once however often health is read', async () => {
    const [port, storePort] = [await freePort(), await freePort()];
    const server = startServerProcess({
      DATA_DIR: await folder(),
      PORT: String(port),
      EVENTSTOREDB_URL: `esdb://127.0.0.1:${storePort}?tls=false`,
    });
    cleanups.push(() => server.kill('SIGKILL'));
    const { get } = apiClient(`http://127.0.0.1:${port}`, undefined);
    const ready = () => get('/health/ready').catch(() => undefined);
    const reply = await eventually(ready, (answer) =>
      /refuses connections/.test(answer?.body.error ?? ''),
    );
    expect(reply?.status).toBe(503);
    expect(reply?.body.error).toBe(
      `The service is starting and waits. The event store at 127.0.0.1:${storePort} refuses connections: start the node, or correct the host and the port in EVENTSTOREDB_URL.`,
    );
    const lines = (text: RegExp) =>
      server
        .errors()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { level: string; msg: string })
        .filter(({ msg }) => text.test(msg));
    // Once by each of the two connections: the service's and, later, its projector's.
    await eventually(
      async () => lines(/refuses connections/),
      (refusals) => refusals.length === 2,
    );
    for (let probe = 0; probe < 20; probe += 1) await ready();
    expect(lines(/requests could not be served/)).toEqual([]);
    expect(lines(/refuses connections/)).toHaveLength(2);

    const node = await startNode({ port: storePort });
    expect(node.port).toBe(storePort);
    await server.ready;
    expect((await ready())?.status).toBe(200);
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
  });
});

describe('a slow store', () => {
  test('completes an append that takes longer than three seconds', async () => {
    const node = await startNode();
    const { store } = await open(node.connectionString);
    await store.head();
    node.faults.delayMs = 3_200;
    const stream = newStream();
    expect(await store.append(stream, 'no_stream', newEvents(1))).toMatchObject({ revision: 0 });
    expect(await store.readStream(stream, { direction: 'forwards', limit: 2 })).toHaveLength(1);
    expect(store.trouble()).toBeUndefined();
  });
});
