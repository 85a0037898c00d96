import { join } from 'node:path';

interface Node {
  /** With its data. */
  folder: string;
  /** For clients, `NAME://host:port` each. */
  listeners: readonly string[];
  /** What clients are told instead, in the same form. */
  advertised?: readonly string[];
  controllerPort: number;
}

/**
 * One node that is broker and controller, for loopback only, with the internal topics in one small
 * copy.
 */
export const serverProperties = ({
  folder,
  listeners,
  advertised = listeners,
  controllerPort,
}: Node): string[] => [
  'process.roles=broker,controller',
  'node.id=1',
  `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
  `listeners=${[...listeners, `CONTROLLER://127.0.0.1:${controllerPort}`].join(',')}`,
  `advertised.listeners=${advertised.join(',')}`,
  'controller.listener.names=CONTROLLER',
  'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT',
  `log.dirs=${join(folder, 'log')}`,
  'offsets.topic.replication.factor=1',
  'offsets.topic.num.partitions=1',
  'transaction.state.log.replication.factor=1',
  'transaction.state.log.min.isr=1',
  'transaction.state.log.num.partitions=1',
  'group.initial.rebalance.delay.ms=0',
  'auto.create.topics.enable=false',
];
