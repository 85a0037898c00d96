import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { writeTar } from '../../../infra/tar/writeTar.ts';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import {
  commitText,
  type DisclosedText,
} from '../../../shared/eventlog/encryption/protectedText.ts';
import {
  bundleContent,
  type BundleContent,
} from '../../../shared/transparency/proof/makeBundle.ts';
import { createRedaction, parseSelectors } from '../../../shared/transparency/proof/redaction.ts';
import type { ShownEvent } from '../../../shared/transparency/proof/shownTexts.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { cosign } from '../../../shared/transparency/tlog/cosignature.ts';
import { leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { signatureLine, signNote } from '../../../shared/transparency/tlog/note.ts';
import { COSIGNATURE, formatVkey, noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import { formatProof } from '../../../shared/transparency/tlog/proofFile.ts';
import {
  consistencyProof,
  createInclusionProver,
  inclusionProof,
} from '../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { memoryTiles } from '../fakes/memoryTiles.ts';
import { AUTHORSHIP } from './authorship.ts';

export const SESSION = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
const ORIGIN = 'turnlog/00000000-0000-4000-8000-000000000001';

export const signer = noteSigner(ORIGIN, generateKeyPairSync('ed25519').privateKey);
export const witness = noteSigner(
  'witness.example/w1',
  generateKeyPairSync('ed25519').privateKey,
  COSIGNATURE,
);

/** The data of a session of so many turns, with texts that JSON writes in several ways. */
function sessionData(turns: number): Array<[string, (text: (one: string) => object) => object]> {
  const ofTurn = (turn: number): ReturnType<typeof sessionData> => [
    [
      'session.turn_started.v1',
      (text) => ({
        turn,
        input: text(`Question ${turn} "\\ \u0007 é 🎉`),
        settings: { temperature: 0.25, '🎉': 1, '\uffff': 2 },
      }),
    ],
    [
      'session.tool_called.v1',
      (text) => ({ turn, arguments: text('{}'), result: text(`result ${turn}`), is_error: false }),
    ],
    [
      'session.turn_completed.v1',
      (text) => ({
        turn,
        output: text(`Answer ${turn}`),
        calls: [{ request_sha256: text('f'.repeat(64)), duration_ms: 3 }],
      }),
    ],
  ];
  return [
    ['session.started.v1', () => ({ agent_id: 'agent_1' })],
    ...Array.from({ length: turns }, (_, index) => ofTurn(index + 1)).flat(),
  ];
}

/** Events of a session with all of their texts disclosed, and the hashes that cover commitments. */
export function shownSession(turns = 3): ShownEvent[] {
  let head = NO_STREAM;
  return sessionData(turns).map(([type, dataOf]) => {
    const id = randomUUID();
    const shown: DisclosedText[] = [];
    const data = dataOf((text) => {
      const disclosed = commitText(text);
      shown.push(disclosed);
      return { sha256: disclosed.sha256 };
    });
    const chained = chainEvents(`session-${SESSION}`, head, [{ id, type, data }], AUTHORSHIP);
    const revision = head.revision + 1;
    head = chained.head;
    const stored = { ...chained.encoded[0]!, stream: `session-${SESSION}`, revision };
    const { position: _none, ...event } = decodeEvent(stored as never);
    const texts = new Map(shown.map((one) => [one.sha256, one]));
    const disclosed = JSON.parse(
      JSON.stringify(event.data),
      (_name, value) => texts.get((value as DisclosedText | null)?.sha256 ?? '') ?? value,
    ) as unknown;
    return { ...event, data: disclosed };
  });
}

/** The leaf of the last event, and the leaves after it. */
const LAST = 300;
const AFTER = 11;

/** The leaves of a session's events, between which others have theirs. */
export const leavesOf = (events: number): number[] =>
  Array.from({ length: events }, (_, at) => LAST - 2 * (events - 1 - at));

/**
 * A bundle of a session, signed by the log and cosigned by the witness. `older` is the size of a
 * tree that it is proven to extend; `shown` are events in place of those that have the leaves.
 */
export async function makeBundle(
  events: readonly ShownEvent[],
  redact = '',
  older?: number,
  shown = events,
): Promise<BundleContent> {
  const { revision, metadata } = events.at(-1)!;
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  const leaves = leavesOf(events.length);
  let olderRoot: Buffer | undefined;
  for (let index = 0; index <= LAST + AFTER; index += 1) {
    if (index === older) olderRoot = edge.root();
    const event = events[leaves.indexOf(index)];
    edge.append(leafEntry(event?.metadata.hash ?? 'a'.repeat(64), index));
  }
  tiles.write(edge.takeFiles());
  const text = formatCheckpoint({ origin: ORIGIN, size: edge.size(), root: edge.root() });
  const checkpoint = signNote(text, [signer]) + signatureLine(cosign(text, witness, 1_767_225_600));
  const hashes = await inclusionProof(tiles, LAST, edge.size());
  const prove = createInclusionProver(tiles, edge.size());
  const proving = leaves.values();
  return bundleContent({
    session_id: SESSION,
    head: { revision, hash: metadata.hash },
    proof: {
      leaf: { hash: metadata.hash, index: LAST },
      proof: formatProof({ index: LAST, hashes, checkpoint }),
      checkpoint,
    },
    vkey: formatVkey(signer.key),
    consistency: olderRoot && {
      older: { size: older!, root: olderRoot },
      hashes: await consistencyProof(tiles, older!, edge.size()),
    },
    shown: (async function* () {
      for (const event of shown) yield { ...event, position: '' as Position };
    })(),
    async proveLeaf() {
      const index = proving.next().value!;
      return { index, hashes: await prove(index) };
    },
    redaction: createRedaction(redact === '' ? [] : parseSelectors(redact)!),
  });
}

/** The files of a bundle as texts. */
export type BundleTexts = Record<string, string>;

export async function textsOf({ small, last }: BundleContent): Promise<BundleTexts> {
  let events = '';
  for await (const piece of last.pieces) events += piece;
  return { ...Object.fromEntries(small), 'events.jsonl': events };
}

const AT = new Date('2026-01-01T00:00:00.000Z');

/** Writes texts as a bundle, in their order. */
export async function writeTexts(file: string, texts: BundleTexts): Promise<void> {
  const small = Object.entries(texts);
  const [name, text] = small.pop()!;
  const { signal } = new AbortController();
  const pieces = (async function* () {
    yield text;
  })();
  const last = { name, pieces };
  await writeTar(file, { small: new Map(small), last, modified: AT, replace: true, signal });
}
