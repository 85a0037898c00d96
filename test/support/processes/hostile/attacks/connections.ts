import { connect } from 'node:net';
import { LIMITS } from '../../../../../shared/limits.ts';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const SILENT = size({ small: 1_000, full: 5_000 });
const TRICKLING = size({ small: 100, full: 300 });
const TRICKLE_MS = 250;
const AGAIN_MS = 250;
const IDLE = size({ small: 200, full: 2_500 });
const UNFINISHED = size({ small: 200, full: 2_000 });
const EXCESSIVE = size({ small: 50, full: 300 });
/** The headers of all these together are more than may stay in memory while their requests wait. */
const PIPELINING = 200;
const WITHOUT_BODY = 800;
/** Connections begin one after another, so that memory is measured and not the rate of connections. */
const STAY_AGAIN_MS = 5_000;
const BEGIN_EVERY_MS = 1;
/** What the names and values of headers may take, but for those of the request itself. */
const HEADERS_BYTES = 15_000;
/** A busy service closes a connection later than it says. */
const SLACK_MS = 20_000;

/** What a connection was answered before it ended. */
export function noteAnswer({ note, report }: Battle, bytes: string): void {
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

/** So many headers, that together are as large as they may be. */
const headers = (count: number): string =>
  Array.from({ length: count }, (_, at) => {
    const name = `x-${at}`;
    return `${name}: ${'v'.repeat(Math.max(1, HEADERS_BYTES / count - name.length))}\r\n`;
  }).join('');

const get = (path: string, more: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}`;
const MOST = headers(LIMITS.http.headers - 4);
const TOO_MANY = headers(1_000);

/** Sends a request and stays, without another one, until the service closes the connection. */
function stay(battle: Battle, bytes: string): Promise<void> {
  const { url, signal } = battle;
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const end = (): void => void socket.destroy();
    let answer = '';
    let isNoted = false;
    signal.addEventListener('abort', end, { once: true });
    socket.write(bytes);
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (isNoted) return;
      answer += text;
      const [head, length] = /^[^]*?\r\ncontent-length: (\d+)[^]*?\r\n\r\n/i.exec(answer) ?? [];
      if (head === undefined || answer.length < head.length + Number(length)) return;
      isNoted = true;
      noteAnswer(battle, answer);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      signal.removeEventListener('abort', end);
      // A stream is followed by what was pipelined, or breaks off.
      if (!signal.aborted && !isNoted) noteAnswer(battle, '');
      resolve();
    });
  });
}

/** Connections that keep the service from forgetting the headers that they have sent. */
export async function holdHeaders(battle: Battle): Promise<void> {
  const { clients, pause, prey } = battle;
  const again = (count: number, bytes: (client: number) => string) =>
    clients(count, async (_agent, client, turn) => {
      await pause(turn > 0 ? STAY_AGAIN_MS : client * BEGIN_EVERY_MS);
      if (!battle.signal.aborted) await stay(battle, bytes(client));
    });
  const follow = get('/v1/events?from=now&wait=60', `x-api-key: ${prey.key}\r\n${MOST}\r\n`);
  const withoutBody = `POST /v1/agents HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1\r\nx-api-key: ${prey.key}\r\n${MOST}\r\n`;
  await Promise.all([
    again(IDLE, () => get('/health/live', `${MOST}\r\n`)),
    again(UNFINISHED, (client) => get('/health/live', client % 2 === 0 ? MOST : TOO_MANY)),
    again(EXCESSIVE, () => get('/health/live', `${TOO_MANY}\r\n`)),
    again(WITHOUT_BODY, () => withoutBody),
    again(PIPELINING, () => follow.repeat(LIMITS.http.pipelined)),
  ]);
}
