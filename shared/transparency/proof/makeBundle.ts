import { proofInvalidError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { Manifest, SmallFileName } from './bundleFormat.ts';
import type { EventProof } from './proveEvent.ts';
import type { Redaction } from './redaction.ts';
import { createStreamChecker, type SeenStream } from './sessionChain.ts';
import type { ShownEvent } from './shownTexts.ts';

/** The input of a bundle. */
export interface BundleSource {
  session_id: string;
  /** The last event of the bundle. */
  head: { revision: number; hash: string };
  proof: EventProof;
  vkey: string;
  /** The events up to the head, with every text that may be disclosed. */
  shown: AsyncIterable<ShownEvent>;
  redaction: Redaction;
}

/** The files of a bundle. Only the last one is of unlimited length. */
export interface BundleContent {
  small: ReadonlyMap<SmallFileName, string>;
  last: { name: 'events.jsonl'; pieces: AsyncIterable<string> };
  /** Filled while the pieces are read. */
  seen: SeenStream;
}

/** Throws `configuration_invalid` for an event that exceeds the limit of verifiers. */
function lineOf(event: ShownEvent): string {
  const line = canonicalJson(event);
  const [bytes, maxBytes] = [Buffer.byteLength(line) + 1, LIMITS.proof.lineBytes];
  if (bytes <= maxBytes) return line;
  throw new TurnlogError(
    'configuration_invalid',
    `The event at revision ${event.revision} takes ${bytes} bytes, and a bundle has events of at most ${maxBytes}: redact texts of it. No bundle was written.`,
  );
}

/**
 * Creates the content of a bundle. Equal sources give equal bytes. A bundle that could not be
 * verified is never completed: the pieces throw `proof_invalid`, or `configuration_invalid` for an
 * event that is too large or a redaction that fails.
 */
export function bundleContent(source: BundleSource): BundleContent {
  const { session_id, head, proof, vkey, redaction } = source;
  const manifest: Manifest = { turnlog_bundle: 1, session_id, events: head.revision + 1 };
  const { add, seen } = createStreamChecker(sessionStream(session_id));

  async function* pieces(): AsyncGenerator<string> {
    for await (const event of source.shown) {
      const shown = redaction.apply(event);
      add(shown);
      yield `${lineOf(shown)}\n`;
    }
    if (seen.events !== manifest.events || seen.hash !== head.hash)
      throw proofInvalidError('The session has changed while it was exported.');
    redaction.requireAllMet();
  }

  return {
    small: new Map<SmallFileName, string>([
      ['manifest', `${canonicalJson(manifest)}\n`],
      ['vkey', `${vkey}\n`],
      ['checkpoint', proof.checkpoint],
      ['session.tlog-proof', proof.proof],
    ]),
    last: { name: 'events.jsonl', pieces: pieces() },
    seen,
  };
}
