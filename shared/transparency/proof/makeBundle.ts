import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import { streamDamagedError } from '../../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import { NO_LEAF } from '../leaves/leafComparison.ts';
import type { LeafProof, LeafProver } from '../leaves/leafProver.ts';
import { formatConsistency, type ConsistencyFile } from '../tlog/consistencyFile.ts';
import type { BundleLine, Manifest, SmallFileName } from './bundleFormat.ts';
import type { EventProof } from './proveEvent.ts';
import type { Redaction } from './redaction.ts';
import { createStreamChecker, type SeenStream } from './sessionChain.ts';
import type { ShownEvent } from './shownTexts.ts';

/** The input of a bundle. */
interface BundleSource {
  session_id: string;
  /** The last event of the bundle. */
  head: { revision: number; hash: string };
  proof: EventProof;
  vkey: string;
  /** An older tree that the checkpoint extends, if one is proven. */
  consistency: ConsistencyFile | undefined;
  /** The events up to the head, with every text that may be disclosed. */
  shown: AsyncIterable<RecordedEvent>;
  /** Proves the leaves of these events, one after the other (`createLeafProver`). */
  proveLeaf: LeafProver;
  redaction: Redaction;
}

/** The files of a bundle. Only the last one is of unlimited length. */
export interface BundleContent {
  small: ReadonlyMap<SmallFileName, string>;
  last: { name: 'events.jsonl'; pieces: AsyncIterable<string> };
  /** Filled while the pieces are read. */
  seen: SeenStream;
}

/** The event with its members in the order of canonical JSON, in which it is written fastest. */
const inOrder = ({ data, id, metadata, revision, stream, type }: ShownEvent): ShownEvent => ({
  data,
  id,
  metadata: Object.fromEntries(
    Object.entries(metadata).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  ) as ShownEvent['metadata'],
  revision,
  stream,
  type,
});

/** Throws `configuration_invalid` for an event that exceeds the limit of verifiers. */
function lineOf(event: ShownEvent, { index, hashes }: LeafProof): string {
  const base64 = hashes.map((hash) => Buffer.from(hash).toString('base64'));
  const line = canonicalJson({ event, hashes: base64, leaf: index } satisfies BundleLine);
  const [bytes, maxBytes] = [Buffer.byteLength(line) + 1, LIMITS.proof.lineBytes];
  if (bytes <= maxBytes) return line;
  throw new TurnlogError(
    'configuration_invalid',
    `The event at revision ${event.revision} takes ${bytes} bytes, and a bundle has events of at most ${maxBytes}: redact texts of it. No bundle was written.`,
  );
}

/**
 * Creates the content of a bundle. Equal sources give equal bytes. A bundle that could not be
 * verified is never completed: the pieces throw `stream_damaged` for an event that does not fit, or has
 * no leaf, and `configuration_invalid` for an event that is too large or a redaction that fails.
 */
export function bundleContent(source: BundleSource): BundleContent {
  const { session_id, head, proof, vkey, redaction } = source;
  const manifest: Manifest = { turnlog_bundle: 2, session_id, events: head.revision + 1 };
  const stream = sessionStream(session_id);
  const { add, seen } = createStreamChecker(stream);
  const damaged = (reason: string): TurnlogError =>
    streamDamagedError({
      stream,
      reason,
      revision: seen.events,
      first_revision: 0,
      last_revision: head.revision,
    });

  async function* pieces(): AsyncGenerator<string> {
    for await (const event of source.shown) {
      const shown = redaction.apply(inOrder(event));
      const fault = add(shown);
      if (fault !== undefined)
        throw damaged(`the event at revision ${seen.events} does not fit: ${fault}`);
      const leaf = await source.proveLeaf({ position: event.position, hash: seen.hash });
      if (!leaf) throw damaged(`the event at revision ${event.revision} ${NO_LEAF}`);
      yield `${lineOf(shown, leaf)}\n`;
    }
    if (seen.events !== manifest.events) throw damaged(`revision ${seen.events} is missing`);
    if (seen.hash !== head.hash) throw damaged('its last event has changed while it was exported');
    redaction.requireAllMet();
  }

  return {
    small: new Map<SmallFileName, string>([
      ['manifest', `${canonicalJson(manifest)}\n`],
      ['vkey', `${vkey}\n`],
      ['checkpoint', proof.checkpoint],
      ['session.tlog-proof', proof.proof],
      ['consistency', source.consistency ? formatConsistency(source.consistency) : ''],
    ]),
    last: { name: 'events.jsonl', pieces: pieces() },
    seen,
  };
}
