import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { debianProgram, withoutProgram } from '../../support/processes/debianProgram.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { openTerminal } from '../../support/processes/terminal.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => (folder = await temporaryFolder()));
afterEach(() => rm(folder, { recursive: true }));

/** Starts are slow: what is printed later is there once the service answers that it is ready. */
const untilReady = (url: string) =>
  eventually(
    () => fetch(`${url}/health/ready`),
    (response) => response.status === 200,
  );

if (debianProgram('python3') === undefined)
  withoutProgram('A first start in a terminal', 'python3');
else {
  test('a first start in a terminal prints text, and the banner with the API key last', async () => {
    const terminal = openTerminal([process.execPath, 'services/main.ts'], {
      DATA_DIR: `${folder}/data`,
      PORT: '0',
    });
    try {
      const [banner] = await terminal.prints(
        /Turnlog listens on http\S+\r\nData folder: .*\r\nAPI key of the account "default", shown this once: tl_key_\S+\r\nTry it:\r\n {2}curl .*\r\n/,
      );
      await untilReady(/http[^\s"]+/.exec(banner)![0]);
      const printed = terminal.printed();
      expect(printed.slice(-banner.length)).toBe(banner);
      const log = printed.slice(0, -banner.length).trimEnd().split('\r\n');
      expect(log.length).toBeGreaterThan(2);
      // A busy machine is allowed to be named, too.
      const expected = /^\d\d:\d\d:\d\d (INFO {2}\S|WARN {2}a step of the event loop took long)/;
      expect(log.filter((line) => !expected.test(line))).toEqual([]);
    } finally {
      terminal.type('\x03');
      await terminal.exited;
    }
  });
}

test('a first start without a terminal prints JSON alone', async () => {
  const server = startServerProcess({ DATA_DIR: `${folder}/data` });
  try {
    await untilReady(await server.ready);
    const log = server.errors().trimEnd().split('\n');
    expect(log.map((line) => (JSON.parse(line) as { level: string }).level)).not.toContain(
      undefined,
    );
  } finally {
    server.kill('SIGTERM');
    await server.exited;
  }
});
