import { connect } from 'node:net';
import { LIMITS } from '../../../../../shared/limits.ts';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const SILENT = size({ small: 1_000, full: 5_000 });
const TRICKLING = size({ small: 100, full: 300 });
const TRICKLE_MS = 250;
const AGAIN_MS = 250;
/** A busy service closes a connection later than it says. */
const SLACK_MS = 20_000;

/** What a connection was answered before it ended. */
function noteAnswer({ note, report }: Battle, bytes: string): void {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) {
    report.answers['cut'] = (report.answers['cut'] ?? 0) + 1;
    return;
  }
  const [status = '', ...lines] = bytes.slice(0, end).split('\r\n');
  const body = bytes.slice(end + 4);
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  note({
    status: Number(status.split(' ')[1]),
    headers,
    head: body,
    tail: body.slice(-16),
    bytes: body.length,
  });
}

/** Nobody may hold a connection for longer than the service says. */
function noteAge({ report }: Battle, mostMs: number, began: number): void {
  const ms = performance.now() - began;
  if (ms > mostMs + SLACK_MS)
    report.oddities.push(`a connection that said too little stayed for ${Math.round(ms)} ms`);
}

/** A connection that says these bytes, one after the other, until it is cut. */
function slowly(battle: Battle, begin: string, trickle: string): Promise<void> {
  const { url, signal } = battle;
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const began = performance.now();
    let answer = '';
    let at = 0;
    const timer =
      trickle === ''
        ? undefined
        : setInterval(() => socket.write(trickle[at++ % trickle.length]!), TRICKLE_MS);
    const end = (): void => void socket.destroy();
    signal.addEventListener('abort', end, { once: true });
    if (begin !== '') socket.write(begin);
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      signal.removeEventListener('abort', end);
      const { headersMs, requestMs } = LIMITS.http;
      noteAge(battle, trickle === '' ? headersMs : requestMs, began);
      if (!signal.aborted) noteAnswer(battle, answer);
      resolve();
    });
  });
}

const post = (key: string | null): string =>
  [
    'POST /v1/agents HTTP/1.1',
    'host: x',
    'content-length: 100000',
    ...Object.entries(jsonHeaders(key)).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');

/** Connections that say nothing, or too little at a time, for ever; whoever is cut comes again. */
export async function holdConnections(battle: Battle): Promise<void> {
  const { clients, pause, prey } = battle;
  const again = async (turn: number): Promise<void> => {
    if (turn > 0) await pause(AGAIN_MS);
  };
  const TRICKLES: readonly (readonly [string, string])[] = [
    ['GET /v1/agents HTTP/1.1\r\nhost: x\r\nx-long: ', 'abcdefgh'],
    ['', 'GET /'],
    [post(prey.key), ' '],
    [post(null), ' '],
    [post('tl_wrong'), '{'],
  ];
  await Promise.all([
    clients(SILENT, async (_agent, _client, turn) => {
      await again(turn);
      await slowly(battle, '', '');
    }),
    clients(TRICKLING, async (_agent, client, turn) => {
      await again(turn);
      await slowly(battle, ...TRICKLES[client % TRICKLES.length]!);
    }),
  ]);
}
