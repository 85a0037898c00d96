import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { typeIds } from '../../../../../../infra/ids/typeIds.ts';
import { startServer } from '../../../../../../services/api/http/connection/server.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

function start(host: string, portOption: 'PORT' | 'METRICS_PORT' = 'PORT') {
  let log = '';
  const logger = createLogger('warn', { write: (line) => void (log += line) });
  const options = { host, port: 0, portOption, maxConnections: 10, ids: typeIds, logger };
  return { started: startServer(new Koa(), options), log: () => log };
}

test.each([
  ['192.0.2.1', 'PORT', 'HOST is 192.0.2.1, which is no address of this machine. Use 127.0.0.1'],
  ['192.0.2.1', 'METRICS_PORT', 'METRICS_HOST is 192.0.2.1, which is no address of this machine.'],
  ['no-such-host.invalid', 'PORT', 'HOST is no-such-host.invalid, which is no host name'],
] as const)('%s for %s is refused in plain words', async (host, portOption, message) => {
  await expect(start(host, portOption).started).rejects.toThrow(message);
});

test('a client that speaks TLS is noted in the log, and told to use http', async () => {
  const { started, log } = start('127.0.0.1');
  const server = await started;
  const port = Number(new URL(server.url).port);
  const client = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await expect(once(client, 'secureConnect')).rejects.toThrow(/wrong version number/i);
  const plain = connectTcp(port);
  plain.write(Buffer.from([0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0x00, 0x00, 0x01, 0x00]));
  const [answer] = (await once(plain, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1.1 400 .*use http:\/\/ instead of https:\/\/\./s);
  plain.destroy();
  expect(log()).toMatch(/a client spoke TLS \(https\) to a port for plain HTTP: use http:/);
  server.destroyConnections();
  await server.close();
});
