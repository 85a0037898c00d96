import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { EXPORT_FORMATS } from '../../../../../shared/exports/formats.ts';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const CLIENTS = size({ small: 800, full: 1_500 });
/** One client of so many reads as fast as it can, the others so many bytes at a time. */
const QUICK = 10;
const SLOWLY = { bytes: 1_024, everyMs: 250 };
const RETRY_MS = 250;
/** As large as an input may be; the model repeats it. */
const INPUT = '\u6f22'.repeat(174_000);
/** How the table counts exports that were cut, apart from connections without a response. */
export const EXPORT_CUT = '200, cut';

/** A session whose last event is as large as an event may be. */
async function converse({ call, pause, signal }: Battle): Promise<string | undefined> {
  const post = async (path: string, body: object, id: RegExp): Promise<string | undefined> => {
    while (!signal.aborted) {
      const answer = await call({ method: 'POST', path, body: JSON.stringify(body) });
      if (answer?.status === 200) return id.exec(answer.head)?.[1];
      await pause(RETRY_MS);
    }
    return undefined;
  };
  const agent = { name: 'A', instruction: 'Be brief.', model: 'echo' };
  const path = `/v1/agents/${await post('/v1/agents', agent, /"agent_id":"(\w+)"/)}/run`;
  const session_id = await post(path, { input: 'hi' }, /"session_id":"(\w+)"/);
  await post(path, { input: INPUT, session_id }, /./);
  return session_id;
}

/** Reads the body slowly, and counts whether it was cut. */
async function readSlowly({ report, signal }: Battle, response: IncomingMessage): Promise<void> {
  response.on('readable', () => undefined);
  const timer = setInterval(() => {
    response.read(SLOWLY.bytes);
    // Of a connection that was cut, a client with unread bytes learns when it writes.
    response.socket.write('\r\n');
  }, SLOWLY.everyMs);
  await new Promise((resolve) => response.once('close', resolve));
  clearInterval(timer);
  if (!response.complete && !signal.aborted)
    report.answers[EXPORT_CUT] = (report.answers[EXPORT_CUT] ?? 0) + 1;
}

/** Requests an export, and leaves when it begins or reads it slowly. */
async function exportUnread(battle: Battle, path: string, leaves: boolean): Promise<void> {
  const { hostname, port } = new URL(battle.url);
  const headers = jsonHeaders(battle.prey.key);
  const sent = httpRequest({ hostname, port, path, headers, signal: battle.signal });
  sent.on('error', () => undefined);
  try {
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.on('error', () => undefined);
    if (response.statusCode === 200 && !leaves) return await readSlowly(battle, response);
    response.destroy();
  } catch {
    // The connection was refused or cut.
  }
  await battle.pause(RETRY_MS);
}

/** Reports of a session, all at once; then exports, which most clients read slowly, and proofs. */
export async function exportSlowly(battle: Battle): Promise<void> {
  const { call, clients, prey } = battle;
  const own = `/v1/sessions/${await converse(battle)}`;
  const largest = `/v1/sessions/${prey.session}`;
  const large = [
    ...EXPORT_FORMATS.map((format) => `${largest}/export?format=${format}`),
    '/v1/export?format=events',
    `${largest}/report`,
  ];
  const all = [...large, `${own}/report`, `${own}/proof`, `${largest}/turns/1/requests`];
  await clients(CLIENTS, (agent, client, turn) => {
    const isQuick = client % QUICK === 0;
    const paths = turn === 0 ? [`${own}/report`] : isQuick ? all : large;
    const path = paths[(client + turn) % paths.length]!;
    return isQuick ? call({ path, agent }) : exportUnread(battle, path, turn === 0);
  });
}
