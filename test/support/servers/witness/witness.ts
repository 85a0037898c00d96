import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { cosign } from '../../../../shared/transparency/tlog/cosignature.ts';
import { decodeBase64 } from '../../../../shared/transparency/tlog/base64.ts';
import { openNote, signatureLine } from '../../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  formatVkey,
  noteSigner,
  parseVkey,
  type NoteSigner,
} from '../../../../shared/transparency/tlog/noteKeys.ts';
import { verifyConsistency, type TreeHead } from '../../../../shared/transparency/tlog/verify.ts';
import { EMPTY_ROOT } from '../../../../shared/transparency/tlog/merkle.ts';

/** What a witness answers. */
export interface Said {
  status: number;
  type?: string;
  body: string;
}

export interface TestWitness {
  url: string;
  vkey: string;
  /** What it keeps: the log's newest tree. */
  head(): TreeHead;
  /** The bodies that it was sent. */
  requests: string[];
  /** The most requests that it had at a time. */
  atOnce(): number;
  /** Answers otherwise from now on; undefined for as it should. */
  use(answer: ((body: string) => Said | Promise<Said>) | undefined): void;
  /** Forgets all that it has cosigned. */
  forget(): void;
  /** What an honest witness says, and does. */
  honest(body: string): Said;
  signer: NoteSigner;
  close(): Promise<void>;
}

const EMPTY: TreeHead = { size: 0, root: EMPTY_ROOT };
/** As litewitness takes; C2SP tlog-witness says nothing of it. */
const MOST_BYTES = 10 * 1_024;
const MOST_HASHES = 63;

const refused = (status: number, why: string): Said => ({ status, body: `${why}\n` });

interface Request {
  oldSize: number;
  proof: Buffer[];
  note: string;
}

/** Reads a request of add-checkpoint; undefined for one that is malformed. */
function parse(body: string): Request | undefined {
  const end = body.indexOf('\n\n');
  const [first = '', ...hashes] = body.slice(0, end).split('\n');
  const [, oldSize] = /^old (0|[1-9]\d*)$/.exec(first) ?? [];
  const proof = hashes.map((hash) => decodeBase64(hash));
  if (end < 0 || oldSize === undefined || hashes.length > MOST_HASHES) return undefined;
  if (!proof.every((hash) => hash?.length === EMPTY_ROOT.length)) return undefined;
  return { oldSize: Number(oldSize), proof: proof as Buffer[], note: body.slice(end + 2) };
}

/**
 * A witness of one log that does what C2SP tlog-witness asks, no more kindly than litewitness:
 * test/faults/othersTools.test.ts sends the same to both.
 */
export async function startTestWitness(name: string, logVkey: () => string): Promise<TestWitness> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signer = noteSigner(name, privateKey, COSIGNATURE);
  const requests: string[] = [];
  let head = EMPTY;
  let atWork = 0;
  let atOnce = 0;
  let instead: ((body: string) => Said | Promise<Said>) | undefined;

  function honest(body: string): Said {
    const request = parse(body);
    if (!request) return refused(400, 'invalid input');
    const log = parseVkey(logVkey());
    if (request.note.split('\n', 1)[0] !== log.name) return refused(404, 'unknown log');
    let checkpoint: string;
    try {
      checkpoint = openNote(request.note, [log]).text;
    } catch {
      return refused(403, 'invalid signature');
    }
    const next = parseCheckpoint(checkpoint);
    if (request.oldSize > next.size) return refused(400, 'invalid input');
    if (request.oldSize !== head.size)
      return { status: 409, type: 'text/x.tlog.size', body: `${head.size}\n` };
    if (head.size > 0 && !verifyConsistency(request.proof, head, next))
      return refused(422, 'bad consistency proof');
    head = { size: next.size, root: next.root };
    const now = Math.floor(Date.now() / 1_000);
    return { status: 200, body: signatureLine(cosign(checkpoint, signer, now)) };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    requests.push(body);
    const fits = Buffer.byteLength(body) <= MOST_BYTES;
    const known = request.method === 'POST' && request.url === '/witness/add-checkpoint';
    const said = !known
      ? refused(404, 'not found')
      : !fits
        ? refused(500, 'http: request body too large')
        : await (instead ?? honest)(body);
    response.writeHead(said.status, { 'content-type': said.type ?? 'text/plain; charset=utf-8' });
    response.end(said.body);
  }

  const server = createServer((request, response) => {
    atWork += 1;
    atOnce = Math.max(atOnce, atWork);
    response.on('close', () => (atWork -= 1));
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/witness`,
    vkey: formatVkey(signer.key),
    head: () => head,
    requests,
    atOnce: () => atOnce,
    use: (answer) => void (instead = answer),
    forget: () => void (head = EMPTY),
    honest,
    signer,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Writes the file of LOG_WITNESSES_FILE into a folder. `wanted` is how many have to cosign. */
export async function writeWitnessesFile(
  folder: string,
  witnesses: readonly Pick<TestWitness, 'url' | 'vkey'>[],
  wanted = 1,
): Promise<string> {
  const file = join(folder, 'witnesses.json');
  const listed = witnesses.map(({ url, vkey }) => ({ url, vkey }));
  await writeFile(file, JSON.stringify({ wanted, witnesses: listed }));
  return file;
}
