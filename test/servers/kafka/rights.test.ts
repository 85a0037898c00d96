import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  AclOperationTypes as May,
  AclPermissionTypes,
  AclResourceTypes as On,
  ResourcePatternTypes,
} from 'kafkajs';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { createLocalBroker } from '../../../infra/local/kafka/localBroker.ts';
import { agentCreated } from '../../support/builders/events.ts';
import { recordHistory } from '../../support/builders/history.ts';
import { orSkip } from '../../support/servers/kafka/kafkaServer.ts';
import { administer } from '../../support/servers/kafka/kafkaTopics.ts';
import {
  publisherOptions,
  relayTo,
  uniquePrefix,
  type TestRelay,
} from '../../support/servers/kafka/relay.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { CERTIFICATE_FILE } from '../../support/servers/tls/files.ts';
import { fixedLog } from '../../support/fakes/fixedLog.ts';

jest.setTimeout(60_000);

const USER = { username: 'relay', password: 'the-right-password' };
const folder = await temporaryFolder();
const broker = await orSkip(async () => {
  const local = await createLocalBroker({
    folder: join(folder, 'kafka'),
    secure: { ...USER, pemFile: CERTIFICATE_FILE },
    properties: [
      'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT',
      'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      'super.users=User:ANONYMOUS',
    ],
  });
  await local.start();
  return local;
});
const onKafka = broker ? describe : describe.skip;

type Right = readonly [resource: On, name: string, operation: May];

/** Those that infra/kafka/README.md names; the relay is to make its topics. */
const RIGHTS: readonly Right[] = [
  ...['.agents', '.sessions', '.dead-letter', '.checkpoints'].flatMap((topic) =>
    [May.DESCRIBE, May.DESCRIBE_CONFIGS, May.WRITE, May.CREATE].map((operation): Right => [
      On.TOPIC,
      topic,
      operation,
    ]),
  ),
  [On.TOPIC, '.checkpoints', May.READ],
  [On.TRANSACTIONAL_ID, '.relay', May.DESCRIBE],
  [On.TRANSACTIONAL_ID, '.relay', May.WRITE],
  ...[May.READ, May.DESCRIBE, May.DELETE].map((operation): Right => [
    On.GROUP,
    '.relay.reader.',
    operation,
  ]),
];

const { record } = recordHistory();
const EVENTS = [record({ stream: 'agent-agent_0' }, agentCreated())];
let prefix: string;
let relay: TestRelay;

beforeEach(() => void (prefix = uniquePrefix()));
afterEach(() => relay.close());
afterAll(async () => {
  await broker?.kill();
  await rm(folder, { recursive: true });
});

async function startWith(rights: readonly Right[]): Promise<void> {
  if (rights.length > 0)
    await administer(broker!.brokers, (admin) =>
      admin.createAcls({
        acl: rights.map(([resourceType, name, operation]) => ({
          resourceType,
          resourceName: `${prefix}${name}`,
          resourcePatternType: ResourcePatternTypes.PREFIXED,
          principal: `User:${USER.username}`,
          host: '*',
          operation,
          permissionType: AclPermissionTypes.ALLOW,
        })),
      }),
    );
  const options = {
    ...publisherOptions(broker!.secureBrokers, prefix),
    security: { tls: false, user: { mechanism: 'plain' as const, ...USER } },
  };
  relay = relayTo(openKafkaPublisher(options), fixedLog(EVENTS));
}

const without = (...left: readonly Right[]): Right[] =>
  RIGHTS.filter((right) => !left.some((other) => other.every((part, at) => part === right[at])));

const isDone = async (): Promise<boolean> => {
  const { state, position } = await relay.health();
  return state === 'relaying' && position === EVENTS[0]!.position;
};

onKafka('brokers that check rights', () => {
  test('take the events of a relay that has those that are said', async () => {
    await startWith(RIGHTS);
    while (!(await isDone())) await sleep(50);
  });

  test.each<[string, Right[], string]>([
    ['any', [...RIGHTS], 'one of the topics|the topic'],
    ['Write on a public topic', [[On.TOPIC, '.agents', May.WRITE]], 'the topic <prefix>.agents'],
    [
      'DescribeConfigs on a public topic',
      [[On.TOPIC, '.agents', May.DESCRIBE_CONFIGS]],
      'the topic <prefix>.agents',
    ],
    [
      'Create of a public topic',
      [[On.TOPIC, '.sessions', May.CREATE]],
      'the topic <prefix>.sessions|on the cluster',
    ],
    [
      'Read on the checkpoint topic',
      [[On.TOPIC, '.checkpoints', May.READ]],
      'the topic <prefix>.checkpoints',
    ],
    [
      'Write on the transactional id',
      [[On.TRANSACTIONAL_ID, '.relay', May.WRITE]],
      'the transactional id <prefix>.relay',
    ],
    [
      'everything on the transactional id',
      RIGHTS.filter(([resource]) => resource === On.TRANSACTIONAL_ID),
      'the transactional id <prefix>.relay',
    ],
    [
      'Read on its groups',
      [[On.GROUP, '.relay.reader.', May.READ]],
      'begin with <prefix>.relay.reader',
    ],
    [
      'Describe on its groups',
      RIGHTS.filter(([resource]) => resource === On.GROUP),
      'begin with <prefix>.relay.reader',
    ],
  ])('are told of without %s', async (_, missing, named) => {
    await startWith(without(...missing));
    for (;;) {
      expect(await isDone()).toBe(false);
      const { reason = '' } = await relay.health();
      if (reason.includes('has no right')) {
        expect(reason).toMatch(new RegExp(named.replaceAll('<prefix>', prefix)));
        return;
      }
      await sleep(100);
    }
  });
});
