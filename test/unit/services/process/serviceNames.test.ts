import { describe, expect, test } from '@jest/globals';
import { chooseServices } from '../../../../services/process/serviceNames.ts';
import { parseConfig } from '../../../../shared/lib/config/config.ts';

const LOG = { EVENTSTOREDB_URL: 'esdb://127.0.0.1:2113?tls=false' };
const DATABASE = { ...LOG, DATABASE_URL: 'postgres://127.0.0.1/turnlog' };
const KAFKA = { KAFKA_BROKERS: '127.0.0.1:9092' };
const choose = (env: Record<string, string>, ...args: string[]) =>
  chooseServices(args, parseConfig(env));

describe('the services of a process', () => {
  test('are by default all that the configuration enables', () => {
    expect(choose({})).toEqual(['api', 'projector']);
    expect(choose(KAFKA)).toEqual(['api', 'projector', 'relay']);
    expect(choose(DATABASE)).toEqual(['api', 'projector']);
  });

  test.each([
    ['api', DATABASE],
    ['projector', DATABASE],
    ['relay', { ...LOG, ...KAFKA }],
    ['api,projector', KAFKA],
    ['api,projector,relay', { ...DATABASE, ...KAFKA }],
  ])('are those that --services names: %s', (list, env) => {
    expect(choose(env, '--services', list)).toEqual(list.split(','));
  });

  test('may be named in any order, with blanks, and twice', () => {
    expect(choose({}, '--services', 'projector, api,api')).toEqual(['api', 'projector']);
  });

  test.each([
    [
      'a name that there is not',
      DATABASE,
      ['--services', 'api,worker'],
      /There is no service "worker"\. --services takes api, projector, relay/,
    ],
    ['no name', DATABASE, ['--services', ''], /There is no service ""/],
    ['another option', {}, ['--service', 'api'], /The only option is --services/],
    ['an argument without an option', {}, ['api'], /The only option is --services/],
    ['a relay without brokers', LOG, ['--services', 'relay'], /set KAFKA_BROKERS/],
    [
      'a relay on the log of another process',
      KAFKA,
      ['--services', 'relay'],
      /set EVENTSTOREDB_URL/,
    ],
    [
      'an API whose read models nobody keeps up to date',
      LOG,
      ['--services', 'api'],
      /set DATABASE_URL/,
    ],
    [
      'a projector into the data folder of another process',
      LOG,
      ['--services', 'projector'],
      /set DATABASE_URL/,
    ],
  ])('are refused with a sentence that helps: %s', (_what, env, args, message) => {
    expect(() => choose(env as Record<string, string>, ...args)).toThrow(message);
  });
});
