import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHttpWitness } from '../../../../../infra/witness/httpWitness.ts';
import { startCosigner, type Cosigner } from '../../../../../services/followers/prover/cosigner.ts';
import { createWitnessesHealth } from '../../../../../services/followers/prover/witnesses.ts';
import type { WitnessesHealth } from '../../../../../shared/health/health.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { cosign, verifyCosignature } from '../../../../../shared/transparency/tlog/cosignature.ts';
import { parseNote, signatureLine } from '../../../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  noteSigner,
  parseVkey,
} from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { ORIGIN, testLog, type TestLog } from '../../../../support/servers/witness/log.ts';
import {
  startTestWitness,
  type Said,
  type TestWitness,
} from '../../../../support/servers/witness/witness.ts';

const SIZE = 700;
const NOW = 1_790_000_000;

let log: TestLog;
let one: TestWitness;
let other: TestWitness;
let cosigner: Cosigner | undefined;
const servers: Server[] = [];

beforeEach(async () => {
  log = await testLog(SIZE);
  one = await startTestWitness('one.test/w', () => log.vkey);
  other = await startTestWitness('other.test/w', () => log.vkey);
});
afterEach(async () => {
  await cosigner?.close();
  cosigner = undefined;
  await Promise.all([one.close(), other.close()]);
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Options {
  wanted?: number;
  witnesses?: { url: string; vkey: string }[];
  served?: string;
  answerMs?: number;
  shortMs?: number;
  retryMs?: number;
}

interface Started extends Cosigner {
  health(): WitnessesHealth;
}

function start(options: Options = {}): Started {
  const {
    wanted = 1,
    witnesses = [one],
    served,
    answerMs,
    shortMs = 60_000,
    retryMs = 50,
  } = options;
  const { onReport, health } = createWitnessesHealth({ shortMs });
  cosigner = startCosigner({
    wanted,
    witnesses: witnesses.map(({ url, vkey }) => createHttpWitness({ url, vkey }, answerMs)),
    tiles: log.tiles,
    served,
    onReport,
    logger: createLogger('silent'),
    times: { retryMs },
  });
  return { ...cosigner, health: () => health()! };
}

/** The names of witnesses whose cosignatures below a note are right. */
const cosignedBy = (note: string): string[] => {
  const { text, signatures } = parseNote(note);
  return [one, other]
    .map(({ vkey }) => parseVkey(vkey))
    .filter((key) =>
      signatures.some((signature) => verifyCosignature(text, key, signature) !== undefined),
    )
    .map(({ name }) => name);
};
const latest = (): string => log.published.at(-1)!;
const firstLines = (): string[] => one.requests.map((body) => body.split('\n', 1)[0]!);

describe('a checkpoint', () => {
  test('is published with the cosignatures that are wanted, and goes on from the one before', async () => {
    const { publish, health } = start({ wanted: 2, witnesses: [one, other] });
    for (const size of [1, 5, 256, 257, SIZE, SIZE]) {
      await publish(await log.checkpoint(size));
      expect(cosignedBy(latest())).toEqual(['one.test/w', 'other.test/w']);
      expect(one.head().size).toBe(size);
    }
    expect(firstLines()).toEqual([0, 1, 5, 256, 257, SIZE].map((size) => `old ${size}`));
    expect(health()).toEqual({ wanted: 2, reached: 2, missing: [] });
  });

  test('is asked about from where the witness is, when that is not known or has changed', async () => {
    await start().publish(await log.checkpoint(5));
    await cosigner!.close();
    await start().publish(await log.checkpoint(300));
    expect(firstLines()).toEqual(['old 0', 'old 0', 'old 5']);
    one.forget();
    await cosigner!.publish(await log.checkpoint(301));
    expect(firstLines().slice(3)).toEqual(['old 300', 'old 0']);
    expect(cosignedBy(latest())).toEqual(['one.test/w']);
  });

  test('that is served at the start keeps its cosignatures, and is given those that it lacks', async () => {
    await start().publish(await log.checkpoint(9));
    await cosigner!.close();
    const { health } = start({ wanted: 2, witnesses: [one, other], served: latest() });
    await eventually(
      () => Promise.resolve(health().reached),
      (reached) => reached === 2,
    );
    expect(cosignedBy(latest())).toEqual(['one.test/w', 'other.test/w']);
    expect(one.requests.length).toBe(1);
    await cosigner!.publish(await log.checkpoint(12));
    expect(firstLines()).toEqual(['old 0', 'old 9']);
  });

  test('does not wait for more than are wanted, and is published again with those that come late', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    other.use(async (body) => {
      await held;
      return other.honest(body);
    });
    const { publish } = start({ wanted: 1, witnesses: [one, other] });
    await publish(await log.checkpoint(3));
    expect(cosignedBy(latest())).toEqual(['one.test/w']);
    release();
    await eventually(
      () => Promise.resolve(cosignedBy(latest())),
      (names) => names.length === 2,
    );
  });

  test('is the newest: a witness is asked about one at a time, and not about those in between', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asked = 0;
    other.use(async (body) => {
      await gates[asked++]?.promise;
      return other.honest(body);
    });
    const { publish } = start({ wanted: 1, witnesses: [one, other] });
    for (const size of [3, 4, 5, 6]) await publish(await log.checkpoint(size));
    expect(other.requests.length).toBe(1);
    for (const gate of gates) gate.resolve();
    await eventually(
      () => Promise.resolve(cosignedBy(latest())),
      (names) => names.length === 2,
    );
    expect([other.requests.length, other.atOnce(), other.head().size]).toEqual([2, 1, 6]);
    expect(latest()).toContain(`${ORIGIN}\n6\n`);
  });
});

/** What a stranger cosigns, or the witness itself where its own signer is given. */
const cosigned = (text: string, signer = one.signer): Said => ({
  status: 200,
  body: signatureLine(cosign(text, signer, NOW)),
});
const textIn = (body: string): string => parseNote(body.slice(body.indexOf('\n\n') + 2)).text;
const stranger = (name: string) =>
  noteSigner(name, generateKeyPairSync('ed25519').privateKey, COSIGNATURE);
const conflict = (body: string, type = 'text/x.tlog.size'): Said => ({ status: 409, type, body });

describe('a witness that is not honest, or not well', () => {
  const LIES: readonly (readonly [string, (body: string) => Said, RegExp])[] = [
    [
      'cosigns the checkpoint before',
      () => cosigned(`${ORIGIN}\n1\n${'A'.repeat(43)}=\n`),
      /without a cosignature/,
    ],
    [
      'cosigns another origin',
      (body) => cosigned(textIn(body).replace(ORIGIN, 'log.test/other')),
      /without a cosignature/,
    ],
    [
      'cosigns another tree',
      () => cosigned(formatCheckpoint({ origin: ORIGIN, size: 7, root: Buffer.alloc(32, 7) })),
      /without a cosignature/,
    ],
    [
      'signs with another key under its own name',
      (body) => cosigned(textIn(body), stranger('one.test/w')),
      /without a cosignature/,
    ],
    [
      'signs under another name',
      (body) => cosigned(textIn(body), stranger('two.test/w')),
      /without a cosignature/,
    ],
    ['answers nothing', () => ({ status: 200, body: '' }), /without a cosignature/],
    [
      'answers rubbish',
      () => ({ status: 200, body: '— x y\n\u0000\n— one.test/w AAAA\n' }),
      /without/,
    ],
    [
      'answers too much',
      () => ({ status: 200, body: 'x'.repeat(2_000_000) }),
      /more than 16384 bytes/,
    ],
    ['says a size beyond ours', () => conflict('701\n'), /701 entries, and the log has 7/],
    ['says 409 for ever', () => conflict('5\n'), /repeatedly reports a different size/],
    [
      'says 409 for ever, another size each time',
      () => conflict(`${one.requests.length}\n`),
      /repeatedly reports a different size/,
    ],
    ['says no size', () => conflict('many\n'), /not which one is right/],
    ['says a size with zeros before it', () => conflict('007\n'), /not which one is right/],
    ['says a size that no log has', () => conflict('9'.repeat(400)), /not which one is right/],
    [
      'says a size under another type',
      () => conflict('5\n', 'text/plain'),
      /not which one is right/,
    ],
    ['does not know the log', () => ({ status: 404, body: '' }), /does not know the log.*404/],
    ['does not know the key', () => ({ status: 403, body: '' }), /does not trust the key.*403/],
    ['finds another tree', () => ({ status: 422, body: '' }), /rewritten.*422/],
    [
      'is overwhelmed',
      () => ({ status: 500, body: '<script>'.repeat(10_000) }),
      /can’t cosign now \(500\)/,
    ],
  ];

  test.each(LIES)(
    'adds nothing to a checkpoint when it %s, and health says why',
    async (_what, say, why) => {
      one.use(say);
      const { publish, health } = start({ shortMs: 0, retryMs: 60_000 });
      await publish(await log.checkpoint(7));
      expect(latest()).toBe(await log.checkpoint(7));
      expect(health()).toMatchObject({ wanted: 1, reached: 0, missing: ['one.test/w'] });
      expect(health().reason).toMatch(/^Only 0 of 1 wanted witnesses /);
      expect(health().reason).toMatch(why);
      expect(one.requests.length).toBeLessThanOrEqual(2);
    },
  );

  test('is asked again, and its cosignature is served as soon as it is well', async () => {
    one.use(() => ({ status: 500, body: '' }));
    const { publish, health } = start({ shortMs: 0 });
    await publish(await log.checkpoint(7));
    expect(health().reason).toContain('one.test/w can’t cosign now');
    one.use(undefined);
    await eventually(
      () => Promise.resolve(cosignedBy(latest())),
      (names) => names.length === 1,
    );
    expect(health()).toEqual({ wanted: 1, reached: 1, missing: [] });
  });

  test('that hangs delays one checkpoint and no more, and is asked no oftener for it', async () => {
    one.use(() => new Promise<never>(() => undefined));
    const { publish, health } = start({ answerMs: 300, shortMs: 0, retryMs: 60_000 });
    await publish(await log.checkpoint(7));
    expect(health().reason).toContain('did not answer within 0.3 s');
    const asked = one.requests.length;
    for (let size = 8; size < 40; size += 1) await publish(await log.checkpoint(size));
    expect(one.requests.length - asked).toBeLessThanOrEqual(1);
    expect(latest()).toBe(await log.checkpoint(39));
  });

  test('that is gone, redirects, or never ends its answer is told apart', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url!);
      if (request.url!.startsWith('/redirects')) {
        response.writeHead(307, { location: '/elsewhere' }).end();
      } else {
        response.writeHead(200);
        const drip = setInterval(() => response.write('— '), 5);
        response.on('close', () => clearInterval(drip));
      }
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gone = await startTestWitness('gone.test/w', () => log.vkey);
    await gone.close();
    const [first, second] = [one.vkey, other.vkey];
    const { publish, health } = start({
      witnesses: [
        gone,
        { url: `${at}/redirects`, vkey: first },
        { url: `${at}/drips`, vkey: second },
      ],
      answerMs: 500,
      shortMs: 0,
      retryMs: 60_000,
    });
    await publish(await log.checkpoint(7));
    const { reason } = health();
    expect(reason).toMatch(/gone\.test\/w can’t be reached \(ECONNREFUSED\)/);
    expect(reason).toMatch(/one\.test\/w redirects \(307\), which is not followed/);
    expect(reason).toMatch(/other\.test\/w did not answer within 0\.5 s/);
    expect(asked).not.toContain('/elsewhere');
  });

  test('keeps nobody from being cosigned by the others', async () => {
    one.use(() => new Promise<never>(() => undefined));
    const { publish, health } = start({ witnesses: [one, other] });
    await publish(await log.checkpoint(7));
    expect(cosignedBy(latest())).toEqual(['other.test/w']);
    expect(health()).toEqual({ wanted: 1, reached: 1, missing: ['one.test/w'] });
  });
});

test('too few cosignatures are trouble only after a while', async () => {
  one.use(() => ({ status: 500, body: '' }));
  const { publish, health } = start();
  await publish(await log.checkpoint(7));
  expect(health()).toEqual({ wanted: 1, reached: 0, missing: ['one.test/w'] });
  expect(LIMITS.witness.shortMs).toBeGreaterThan(
    LIMITS.witness.answerMs + LIMITS.witness.publishMs,
  );
});

test('a witness that sends another one’s signatures along is taken at its own', async () => {
  one.use((body) => {
    const said = one.honest(body);
    return { ...said, body: `${cosigned(textIn(body), stranger('x.test/w')).body}${said.body}` };
  });
  await start().publish(await log.checkpoint(7));
  expect(parseNote(latest()).signatures.map(({ name }) => name)).toEqual([ORIGIN, 'one.test/w']);
});
