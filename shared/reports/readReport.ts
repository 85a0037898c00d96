import { readConfigurationAt } from '../agents/revisions.ts';
import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createLeafProver } from '../transparency/leaves/leafProver.ts';
import { reportMissingLeaf } from '../transparency/leaves/missingLeaf.ts';
import type { Redaction } from '../transparency/proof/redaction.ts';
import { readDisclosed } from '../transparency/proof/readSession.ts';
import { createStreamChecker } from '../transparency/proof/sessionChain.ts';
import type { TileReader } from '../transparency/tileStore.ts';
import { parseCheckpoint } from '../transparency/tlog/checkpoint.ts';
import { parseNote } from '../transparency/tlog/note.ts';
import type { ReportedEvent } from './eventSection.ts';
import { renderReport, type ReportSource } from './report.ts';

interface ReportStores extends StreamSource {
  store: StreamSource['store'] & Pick<ProtectedStore, 'keys'>;
  tiles: TileReader;
}

/** The content of a report. */
export interface ReportRequest extends Pick<
  ReportSource,
  'session_id' | 'made_at' | 'proof' | 'vkey'
> {
  /** The revision of the proven event. */
  last: number;
  /** Withholds texts. The agent's texts are withheld with it, too. */
  redaction?: Redaction | undefined;
}

/** The events up to a revision, oldest first, with every text that is not erased or redacted. */
async function* readReported(
  stores: ReportStores,
  { session_id, last, proof, redaction }: ReportRequest,
  signal: AbortSignal,
): AsyncGenerator<ReportedEvent> {
  const { store, tiles } = stores;
  const stream = sessionStream(session_id);
  const prove = createLeafProver(tiles, parseCheckpoint(parseNote(proof.checkpoint).text));
  for await (const { position, ...event } of readDisclosed(store, stream, last, signal)) {
    const leaf = await prove({ position, hash: event.metadata.hash });
    if (!leaf) throw await reportMissingLeaf(stores, event);
    yield { ...(redaction?.apply(event) ?? event), index: leaf.index };
  }
}

/** Reads agents as they were; undefined for an erased one. */
const createAgentFinder = (source: StreamSource): ReportSource['findAgent'] =>
  async function findAgent(agentId, revision) {
    try {
      return await readConfigurationAt(source, agentId, revision);
    } catch (error) {
      if (isTurnlogError(error, 'agent_erased')) return undefined;
      throw error;
    }
  };

/**
 * The report of a session up to its proven event, in pieces of HTML. Holds a page of the log. Errors:
 * `proof_invalid` for an event that does not fit its chain, `stream_damaged` for one without a leaf, `key_missing`,
 * `store_unavailable`, the abort reason.
 */
export const renderSessionReport = (
  stores: ReportStores,
  request: ReportRequest,
  signal: AbortSignal,
): AsyncGenerator<string> =>
  renderReport({
    ...request,
    events: readReported(stores, request, signal),
    checker: createStreamChecker(sessionStream(request.session_id)),
    findAgent: request.redaction ? async () => undefined : createAgentFinder(stores),
  });
