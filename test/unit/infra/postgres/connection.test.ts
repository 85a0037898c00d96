import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { plainEnvironment } from '../../../support/processes/plainEnvironment.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const MIB = 1024 * 1024;
const LONGEST_MS = 20_000;

/** Asks the server at DATABASE once on a connection and once in a pool, and prints the errors. */
const PROGRAM = `
  import { Pool } from 'pg';
  import { connectionOptions, connectPostgres } from './infra/postgres/connection.ts';

  const purpose = { name: 'turnlog queries', statementMs: 9_000 };
  const report = ({ message, code }) => console.log(code ?? message);
  async function queryOnConnection() {
    const { client, close } = await connectPostgres(process.env.DATABASE, purpose);
    await client.query('SELECT').catch(report);
    await close();
  }
  async function queryInPool() {
    const pool = new Pool({ ...connectionOptions(process.env.DATABASE, purpose), max: 1 });
    pool.on('error', () => undefined);
    await pool.query('SELECT').catch(report);
    await pool.end();
  }
  await queryOnConnection();
  await queryInPool();
`;

/** Together, so many answers of 8 MiB take more than one answer may take. */
const QUERIES = 13;
/** Sends queries one after the other on one connection. */
const QUERIES_PROGRAM = `
  import { connectPostgres } from './infra/postgres/connection.ts';

  const purpose = { name: 'turnlog queries', statementMs: 9_000 };
  const { client, close } = await connectPostgres(process.env.DATABASE, purpose);
  for (let query = 0; query < ${QUERIES}; query += 1) await client.query('SELECT');
  await close();
  console.log('all answered');
`;

const int16 = (value: number): Buffer => {
  const buffer = Buffer.alloc(2);
  buffer.writeInt16BE(value);
  return buffer;
};
const int32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
};
const message = (code: string, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(code), int32(4 + body.length), body]);
};
const READY = message('Z', Buffer.from('I'));
const AUTHENTICATED = Buffer.concat([message('R', int32(0)), READY]);
/** One column of text. */
const COLUMN = Buffer.concat([
  Buffer.from('c\0'),
  int32(0),
  int16(0),
  int32(25),
  int16(-1),
  int32(-1),
  int16(0),
]);
const DESCRIPTION = message('T', int16(1), COLUMN);
const row = (length: number): Buffer =>
  message('D', int16(1), int32(length), Buffer.alloc(length, 'x'));

/** Lets a program with a heap of 96 MiB query a server that answers as given. */
async function queryServer(answer: (socket: Socket) => void, source = PROGRAM) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(AUTHENTICATED);
      socket.once('data', () => answer(socket));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const program = spawn(
    process.execPath,
    ['--max-old-space-size=96', '--max-semi-space-size=1', '--input-type=module', '--eval', source],
    {
      cwd: root,
      env: { ...plainEnvironment(), DATABASE: `postgres://turnlog@127.0.0.1:${port}/turnlog` },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: LONGEST_MS,
      killSignal: 'SIGKILL',
    },
  );
  const [output, [exitCode]] = await Promise.all([
    text(program.stdout),
    once(program, 'close') as Promise<[number | null]>,
  ]);
  server.close();
  return { exitCode, errors: output.trim().split('\n') };
}

const invalid = {
  exitCode: 0,
  errors: Array<string>(2).fill('PostgreSQL sent an invalid message.'),
};

const answerOf = (bytes: number): Buffer =>
  Buffer.concat([DESCRIPTION, row(bytes), message('C', Buffer.from('SELECT 1\0')), READY]);

test('an answer is read', async () => {
  expect(await queryServer((socket) => socket.write(answerOf(3)))).toEqual({
    exitCode: 0,
    errors: [''],
  });
});

test.each<[string, Buffer]>([
  ['a row with a negative number of fields', message('D', int16(-1))],
  ['a row with fewer fields than announced', message('D', int16(2), int32(-1))],
  ['a field that is longer than its row', message('D', int16(1), int32(MIB), Buffer.alloc(9))],
  [
    'fields that overlap',
    message('D', int16(30_000), Buffer.concat(Array<Buffer>(30_000).fill(int32(-4)))),
  ],
  ['an error without its end', message('E', Buffer.from('Mwrong'))],
  ['a message that is shorter than its length', Buffer.concat([Buffer.from('D'), int32(3)])],
  ['the header of a message of 4 GiB', Buffer.concat([Buffer.from('D'), int32(-1)])],
])(
  '%s ends the connection with an error',
  async (_what, answer) => {
    expect(await queryServer((socket) => socket.write(answer))).toEqual(invalid);
  },
  60_000,
);

test('rows without an end do not fill the memory', async () => {
  const rows = Buffer.concat(Array<Buffer>(16).fill(row(64 * 1024)));
  const result = await queryServer((socket) => {
    socket.write(DESCRIPTION);
    const sendMore = (): void => {
      while (socket.writable && socket.write(rows));
    };
    socket.on('drain', sendMore);
    sendMore();
  });
  expect(result).toEqual(invalid);
}, 60_000);

test('a connection is kept whatever all of its answers and notifications take together', async () => {
  const answer = answerOf(8 * MIB);
  const notification = message('A', int32(1), Buffer.from(`c\0${'x'.repeat(1_000)}\0`));
  const notifications = Buffer.concat(Array<Buffer>(8 * 1024).fill(notification));
  const result = await queryServer((socket) => {
    let answers = 0;
    async function sendNext(): Promise<void> {
      answers += 1;
      if (answers === QUERIES)
        for (let batch = 0; batch < QUERIES; batch += 1)
          if (!socket.write(notifications)) await once(socket, 'drain');
      socket.write(answer);
    }
    // The program says if it has lost its connection.
    const send = (): void => void sendNext().catch(() => undefined);
    socket.on('data', send);
    send();
  }, QUERIES_PROGRAM);
  expect(result).toEqual({ exitCode: 0, errors: ['all answered'] });
}, 60_000);
