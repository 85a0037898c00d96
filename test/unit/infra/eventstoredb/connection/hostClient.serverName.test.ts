import { beforeAll, expect, test } from '@jest/globals';
import { credentials } from '@grpc/grpc-js';
import type { SecureContext } from 'node:tls';
import { openHostClient } from '../../../../../infra/eventstoredb/connection/hostClient.ts';

beforeAll(() =>
  openHostClient({ connectionString: 'esdb://es1.example', compression: false }).close(),
);

interface Connector {
  connectionOptions: { host: string; servername?: string };
}

/** How @grpc/grpc-js connects with TLS to a host of that name. */
function connectionOptionsOf(host: string): Connector['connectionOptions'] {
  const channel = credentials.createFromSecureContext({} as SecureContext) as unknown as {
    _createSecureConnector(target: object, options: object): Connector;
  };
  const target = { scheme: 'dns', path: `${host}:2113` };
  return channel._createSecureConnector(target, {}).connectionOptions;
}

test('a host that is an IP address is not sent as the name of the server, which Node.js warns of', () => {
  const options = connectionOptionsOf('10.0.0.7');
  expect(options).not.toHaveProperty('servername');
  // The certificate is compared with the host.
  expect(options.host).toBe('10.0.0.7');
});

test('a host that is a name is sent', () => {
  expect(connectionOptionsOf('es1.example')).toMatchObject({ servername: 'es1.example' });
});
