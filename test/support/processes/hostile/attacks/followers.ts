import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const FOLLOWERS = size({ small: 500, full: 1_999 });
const CONNECTED_AT_ONCE = 32;

/** Starts a streamed run whose model goes on, and reads it. Resolves with the path of its turn. */
async function startTurn({ url, prey, signal }: Battle): Promise<string> {
  const response = await fetch(`${url}/v1/agents/${prey.agents.telling}/run`, {
    method: 'POST',
    headers: { ...jsonHeaders(prey.key), accept: 'text/event-stream' },
    body: JSON.stringify({ input: 'hi' }),
    signal,
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ''; ;) {
    const { value = '', done } = await reader.read();
    text += value;
    const [, session, turn] = /"session_id":"(\w+)","turn":(\d+)/.exec(text) ?? [];
    if (session === undefined && !done) continue;
    const readOn = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    readOn().catch(() => undefined);
    return `/v1/sessions/${session}/turns/${turn}/stream`;
  }
}

/** Follows a turn, and counts once that its text arrives. Resolves when the stream ends. */
async function follow({ url, prey, signal, report }: Battle, path: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  const leave = (): void => void socket.destroy();
  signal.addEventListener('abort', leave, { once: true });
  socket.on('error', () => undefined);
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${prey.key}\r\nconnection: close\r\n\r\n`,
  );
  let head: string | undefined = '';
  socket.on('data', (bytes: Buffer) => {
    if (head === undefined) return;
    head += bytes.toString('latin1');
    const [, kind] = /^HTTP\/1.1 (200)[^]*\n(?:event: (output.delta))/.exec(head) ?? [];
    if (kind === undefined) return;
    head = undefined;
    report.answers['200 output.delta'] = (report.answers['200 output.delta'] ?? 0) + 1;
  });
  await once(socket, 'close');
  signal.removeEventListener('abort', leave);
}

/** One turn after another, and clients that all follow it. */
export async function followTurn(battle: Battle): Promise<void> {
  while (!battle.signal.aborted) {
    const path = await startTurn(battle).catch(() => undefined);
    if (path === undefined) continue;
    const followers: Promise<void>[] = [];
    for (let count = 0; count < FOLLOWERS && !battle.signal.aborted; count += 1) {
      followers.push(follow(battle, path));
      if (count % CONNECTED_AT_ONCE === 0) await battle.pause(20);
    }
    await Promise.all(followers);
  }
}
