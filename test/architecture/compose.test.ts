import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { ConfigSchema, parseConfig } from '../../shared/lib/config/config.ts';
import { EVENTSTOREDB_IMAGE } from '../support/servers/eventstoredb/eventStoreDbServer.ts';
import { KAFKA_IMAGE } from '../support/servers/kafka/kafkaServer.ts';
import { POSTGRES_IMAGE } from '../support/servers/postgres/postgresServer.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const services = (file: string): Record<string, any> =>
  parse(read(`infra/deploy/${file}`), { merge: true }).services;
const servers = services('compose.yaml');
const processes = services('compose.services.yaml');
const ours = ['api', 'projector', 'relay'];
const byDefault = (image: string): string => /^\$\{\w+:-(.+)\}$/.exec(image)?.[1] ?? image;

test('nothing is published beyond this machine', () => {
  const ports = [...Object.values(servers), ...Object.values(processes)].flatMap(
    (service) => (service.ports ?? []) as string[],
  );
  expect(ports.length).toBeGreaterThan(0);
  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
});

test('every image has a version, and the servers are those that the tests start', () => {
  const images = [...Object.values(servers), ...Object.values(processes)].flatMap(({ image }) =>
    image === undefined ? [] : [byDefault(image)],
  );
  expect(images.filter((image) => !/^[\w/-]+:(\d|local$)/.test(image))).toEqual([]);
  expect(EVENTSTOREDB_IMAGE).toBe(servers['eventstore1'].image);
  expect(KAFKA_IMAGE).toBe(servers['kafka'].image);
  expect(POSTGRES_IMAGE).toBe(byDefault(servers['postgres'].image));
});

test('the event store keeps its data where its volume is, and is none of 24.2.0 to 24.10.4, which send checkpoints that are no place', () => {
  for (const number of [1, 2, 3]) {
    const { image, volumes } = servers[`eventstore${number}`];
    const [major, minor, patch] = /:(\d+)\.(\d+)\.(\d+)/.exec(image)!.slice(1).map(Number) as [
      number,
      number,
      number,
    ];
    const version = (major * 100 + minor) * 100 + patch;
    expect(version < 24_02_00 || version > 24_10_04).toBe(true);
    expect(volumes).toEqual([
      `eventstore${number}:${image.includes('kurrentdb') ? '/var/lib/kurrentdb' : '/var/lib/eventstore'}`,
    ]);
  }
});

test('three API replicas, and two each of what stands by for the other, run without rights and with options that there are', () => {
  expect(ours.map((name) => processes[name].deploy.replicas)).toEqual([3, 2, 2]);
  for (const name of ours) {
    expect(processes[name]).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      command: ['--services', name],
    });
    expect(
      Object.keys(processes[name].environment).filter(
        (option) => !Object.hasOwn(ConfigSchema.properties, option),
      ),
    ).toEqual([]);
    const { SHUTDOWN_GRACE_MS, DRAIN_MS } = parseConfig(
      name === 'api' ? { DRAIN_MS: processes[name].environment.DRAIN_MS } : {},
    );
    expect(Number.parseInt(processes[name].stop_grace_period, 10) * 1_000).toBeGreaterThan(
      DRAIN_MS + SHUTDOWN_GRACE_MS + 2_000,
    );
  }
});

test('every process has the database, and its keys where the options name them, by no secret, which a container that is read-only does not take', () => {
  for (const name of ours) {
    const { environment, volumes, secrets } = processes[name];
    const { MASTER_KEY_FILE, LOG_SIGNING_KEY_FILE } = environment;
    expect(environment.DATABASE_URL).toContain('@postgres');
    expect(LOG_SIGNING_KEY_FILE === undefined).toBe(name !== 'projector');
    const files = [MASTER_KEY_FILE, LOG_SIGNING_KEY_FILE].filter(Boolean);
    expect(volumes).toEqual(files.map((file) => expect.stringMatching(new RegExp(`:${file}:ro$`))));
    expect(secrets).toBeUndefined();
  }
});

test('what a process waits for before it starts has a health check', () => {
  const awaited = ours.flatMap((name) => Object.keys(processes[name].depends_on));
  expect(awaited).toContain('postgres');
  expect(awaited.filter((name) => servers[name]?.healthcheck === undefined)).toEqual([]);
});

test('each KurrentDB node gossips with the others by name and advertises a way to itself', () => {
  for (const number of [1, 2, 3]) {
    const { environment, ports } = servers[`eventstore${number}`];
    const others = [1, 2, 3]
      .filter((other) => other !== number)
      .map((other) => `eventstore${other}:2113`);
    expect(environment.KURRENTDB_GOSSIP_SEED.split(',')).toEqual(others);
    expect(environment.KURRENTDB_NODE_HOST_ADVERTISE_AS).toBe(`eventstore${number}`);
    expect(ports).toEqual([
      `${environment.KURRENTDB_ADVERTISE_HOST_TO_CLIENT_AS}:${environment.KURRENTDB_ADVERTISE_NODE_PORT_TO_CLIENT_AS}:2113`,
    ]);
    expect(processes[`eventstore${number}`].environment).toEqual({
      KURRENTDB_ADVERTISE_HOST_TO_CLIENT_AS: `eventstore${number}`,
      KURRENTDB_ADVERTISE_NODE_PORT_TO_CLIENT_AS: '2113',
    });
  }
});

test('an API replica that leaves serves on for longer than the load balancer takes to turn away', () => {
  const ready = /^backend ready\n(?:.+\n)+/m.exec(read('infra/deploy/haproxy.cfg'))?.[0] ?? '';
  const [, inter, fastinter, fall] = /check inter (\d+)s fastinter (\d+)ms fall (\d+)/
    .exec(ready)!
    .map(Number);
  const noticed = inter! * 1_000 + (fall! - 1) * fastinter!;
  expect(Number(processes['api'].environment.DRAIN_MS)).toBeGreaterThan(noticed + 1_000);
});

test('the load balancer waits longer than a run may take, and keeps idle connections as long as replicas promise clients', () => {
  const limit = (name: string): number =>
    Number(
      new RegExp(`^  timeout ${name} (\\d+)s$`, 'm').exec(read('infra/deploy/haproxy.cfg'))?.[1],
    ) * 1_000;
  const { RUN_TIMEOUT_MS, RUN_WAIT_MS } = parseConfig({});
  expect(limit('server')).toBeGreaterThan(RUN_TIMEOUT_MS + RUN_WAIT_MS);
  const keepAlive = Number(
    /KEEP_ALIVE_MS = ([\d_]+)/
      .exec(read('services/api/http/connection/server.ts'))?.[1]
      ?.replaceAll('_', ''),
  );
  expect(limit('http-keep-alive')).toBeGreaterThan(keepAlive);
});
