import { expect, test } from '@jest/globals';
import { misspeltOptions } from '../../../../shared/lib/config/config.ts';

test.each([
  ['MODEL_FILE', 'MODELS_FILE'],
  ['KAFKA_BROKER', 'KAFKA_BROKERS'],
  ['EVENTSTORDB_URL', 'EVENTSTOREDB_URL'],
  ['EVENTSTORE_DB_URL', 'EVENTSTOREDB_URL'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['TURNLOG_DATA_DIR', 'DATA_DIR'],
  ['database_url', 'DATABASE_URL'],
  ['TURNLOG_PORT', 'PORT'],
  ['TURNLOG_HOST', 'HOST'],
])('%s may be meant for %s', (variable, option) => {
  expect(misspeltOptions({ [variable]: 'x' })).toEqual([{ variable, option }]);
});

test.each([
  ['is the option itself', { MODELS_FILE: 'x' }],
  ['is beside the option that it looks like', { DATABASE_URI: 'x', DATABASE_URL: 'y' }],
  ['is empty', { MODEL_FILE: '' }],
  ['is like a short option, as too much else is', { POST: '1', HOSTS: 'x', SPORT: 'x' }],
  ['is of another program', { KAFKA_HOME: '/opt', HOSTNAME: 'x', DATABASE_URL_READ: 'x' }],
  [
    'is what Kubernetes injects',
    {
      TURNLOG_PORT: 'tcp://10.0.0.1:80',
      TURNLOG_METRICS_PORT: 'tcp://10.0.0.1:80',
      TURNLOG_SERVICE_HOST: '10.0.0.1',
      KAFKA_PORT: 'tcp://x',
    },
  ],
])('nothing is said of a variable that %s', (_what, env) => {
  expect(misspeltOptions(env)).toEqual([]);
});
