import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { parseConnectionString } from '../../../../../infra/eventstoredb/connection/connectionString.ts';
import {
  createTroubleLog,
  describeHostError,
  NO_ANSWER,
} from '../../../../../infra/eventstoredb/connection/troubleLog.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const RECOVERED = 'the event store can be used again';

function troubleLogWithLines() {
  const lines: string[] = [];
  const troubleLog = createTroubleLog({ warn: (_, message) => void lines.push(message) });
  return { troubleLog, lines };
}

test('logs a trouble with a cause, and its end, at once', () => {
  const { troubleLog, lines } = troubleLogWithLines();
  troubleLog.set('It refuses connections.');
  troubleLog.set('It refuses connections.');
  troubleLog.set(undefined);
  troubleLog.set(undefined);
  expect(lines).toEqual(['It refuses connections.', RECOVERED]);
});

test('reports a missing answer at once, but logs it only when it persists', () => {
  const { troubleLog, lines } = troubleLogWithLines();
  troubleLog.set(NO_ANSWER);
  expect(troubleLog.current()).toBe(NO_ANSWER);
  jest.advanceTimersByTime(900);
  troubleLog.set(NO_ANSWER);
  troubleLog.set(undefined);
  expect(lines).toEqual([]);
  for (let round = 0; round < 4; round += 1) {
    troubleLog.set(NO_ANSWER);
    jest.advanceTimersByTime(400);
  }
  troubleLog.set(undefined);
  expect(lines).toEqual([NO_ANSWER, RECOVERED]);
});

const host = { address: 'es1', port: 2113 };

test.each([
  [
    'self-signed certificate; if the root CA is installed locally, try running Node.js with --use-system-ca',
    '(self-signed certificate): set tlsCAFile in EVENTSTOREDB_URL to the file of its authority.',
  ],
  [
    "Hostname/IP does not match certificate's altnames: Host: es1. is not in the cert's altnames: DNS:es2",
    ': use a name of the certificate in EVENTSTOREDB_URL and in the address that the node advertises.',
  ],
  ['certificate has expired', '(certificate has expired): renew it, or correct the clock.'],
])('says what to do about the certificate after "%s"', (message, remedy) => {
  const details = `No connection established. Last error: Error: ${message}. Resolution note: `;
  const error = Object.assign(new Error(details), { code: 14, details });
  const trouble = describeHostError(host, parseConnectionString('esdb://es1'), error);
  expect(trouble).toContain('The certificate of the event store at es1:2113 is not accepted (');
  expect(trouble.endsWith(remedy)).toBe(true);
});

test.each(['bad certificate', 'certificate required', 'unknown ca'])(
  'says which certificate a node refuses with "%s"',
  (alert) => {
    const error = new Error(`ssl3_read_bytes:ssl/tls alert ${alert}`);
    const trouble = describeHostError(host, parseConnectionString('esdb://es1'), error);
    expect(trouble).toContain('refuses the certificate of this service');
    expect(trouble).toContain('userCertFile');
  },
);
