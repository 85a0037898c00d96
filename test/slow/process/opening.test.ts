import { rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { openTurnlog, startService } from '../../../services/compose/service.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const SERVICES = ['api', 'projector'] as const;
const logger = createLogger('silent');
let folder: string;
let closed: number[];

/**
 * Notes in which order the things that are opened are closed, each by its place in the order of
 * opening.
 */
function noteClosing(): void {
  closed = [];
  let opened = 0;
  const { adopt } = AsyncDisposableStack.prototype;
  const noting = function (
    this: AsyncDisposableStack,
    value: unknown,
    close: (it: unknown) => unknown,
  ) {
    const place = opened;
    opened += 1;
    return adopt.call(this, value, async (it) => {
      await close(it);
      closed.push(place);
    });
  };
  jest.spyOn(AsyncDisposableStack.prototype, 'adopt').mockImplementation(noting);
}

beforeEach(async () => {
  folder = await temporaryFolder();
  noteClosing();
});

afterEach(async () => {
  jest.restoreAllMocks();
  await rm(folder, { recursive: true });
});

const configOf = (more: Record<string, string>) =>
  parseConfig({ DATA_DIR: join(folder, 'data'), PORT: '0', CONSOLE: 'off', ...more });

/** Opens the data folder, which only one server can. */
async function expectFreed(): Promise<void> {
  await using turnlog = await openTurnlog(configOf({}), logger, SERVICES);
  expect(turnlog.api?.catalogue.models.list()).not.toEqual([]);
}

test('an opening that fails closes what was opened before, the last first', async () => {
  const config = configOf({ MODELS_FILE: join(folder, 'missing.json') });
  await expect(openTurnlog(config, logger, SERVICES)).rejects.toMatchObject({
    code: 'configuration_invalid',
  });
  // The lock, the key store (1, which is handed on once its master keys are read), the store, the
  // projector, and the read models; the registry is what fails.
  expect(closed).toEqual([4, 3, 2, 0]);
  await expectFreed();
});

test('a start that fails once everything is open closes all of it, the last first', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  const { signal } = new AbortController();
  const start = startService(configOf({ PORT: String(port) }), logger, {
    services: SERVICES,
    signal,
  });
  await expect(start).rejects.toThrow('is in use');
  expect(closed).toEqual([5, 4, 3, 2, 0]);
  await expectFreed();
  other.close();
});

test('a service that was started and is stopped closes all of it, the last first', async () => {
  const { signal } = new AbortController();
  const service = await startService(configOf({}), logger, { services: SERVICES, signal });
  expect(closed).toEqual([]);
  await service.stop();
  // Beside the parts: the leaderships of the tasks that a started service runs (webhooks, replays).
  expect(closed.filter((part) => part <= 6)).toEqual([6, 5, 4, 3, 2, 0]);
  expect(closed).toEqual(closed.toSorted((a, b) => b - a));
  await expectFreed();
});
