import { proofInvalidError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { Manifest, SmallFileName } from './bundleFormat.ts';
import type { EventProof } from './proveEvent.ts';
import type { Redaction } from './redaction.ts';
import { createStreamChecker, type SeenStream } from './sessionChain.ts';
import type { ShownEvent } from './shownTexts.ts';

/** What a bundle is made of. */
export interface BundleSource {
  session_id: string;
  /** Of the last event that goes into it. */
  head: { revision: number; hash: string };
  proof: EventProof;
  vkey: string;
  /** The events up to the head, with all that may be disclosed. */
  shown: AsyncIterable<ShownEvent>;
  redaction: Redaction;
}

/** The files of a bundle, of which the last one may be of any length. */
export interface BundleContent {
  small: ReadonlyMap<SmallFileName, string>;
  last: { name: 'events.jsonl'; pieces: AsyncIterable<string> };
  /** Filled while the pieces are read. */
  seen: SeenStream;
}

/** Errors: `configuration_invalid` for an event that no verifier takes. */
function lineOf(event: ShownEvent): string {
  const line = canonicalJson(event);
  const [bytes, most] = [Buffer.byteLength(line) + 1, LIMITS.proof.lineBytes];
  if (bytes <= most) return line;
  throw new TurnlogError(
    'configuration_invalid',
    `The event at revision ${event.revision} takes ${bytes} bytes, and a bundle has events of at most ${most}: redact texts of it. No bundle was written.`,
  );
}

/**
 * The content of a bundle. The same source makes the same bytes. What would not verify is not
 * written: the pieces throw `proof_invalid`, `configuration_invalid` for an event that is too long, and
 * what the redaction throws.
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
