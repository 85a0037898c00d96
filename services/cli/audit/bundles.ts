import { resolve } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { isoTime, recordingTime } from '../../../shared/ports/clock.ts';
import { recordAudit } from '../../../shared/audit/commands.ts';
import { readUntilComplete } from '../../../shared/eventlog/reading/readUntilComplete.ts';
import type { StreamFlaw } from '../../../shared/eventlog/reading/streamDamage.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import { renderSessionReport, type ReportRequest } from '../../../shared/reports/readReport.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { createLeafProver } from '../../../shared/transparency/leaves/leafProver.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { parseNote } from '../../../shared/transparency/tlog/note.ts';
import { bundleContent } from '../../../shared/transparency/proof/makeBundle.ts';
import { readDisclosed } from '../../../shared/transparency/proof/readSession.ts';
import {
  createRedaction,
  parseSelectors,
  SELECTORS_HELP,
  type Selector,
} from '../../../shared/transparency/proof/redaction.ts';
import type { SeenStream } from '../../../shared/transparency/proof/sessionChain.ts';
import {
  verifyBundle,
  type VerifiedBundle,
} from '../../../shared/transparency/proof/verifyBundle.ts';
import { headOfSession } from '../../../shared/transparency/proof/sessionProof.ts';
import {
  readBundleFile,
  writeBundleFile,
  writeCompleteFile,
} from '../../compose/operator/operator.ts';
import { parseVkeyOption } from './checkpoints.ts';
import { readTextFile } from '../textFile.ts';
import type { CliContext, TerminalContext, WithOperator, WithTerminal } from '../context.ts';
import { usageError } from '../failure.ts';
import { proveForExport } from './exportProof.ts';
import { requireWritable } from './headsFile.ts';
import { presentCheckpoint, showVerdict } from './verdict.ts';
import {
  addWitnessOptions,
  describeCosigners,
  parseWitnessPolicy,
  type WitnessOptions,
} from './witnessOptions.ts';
import { formatRate } from '../progressLine.ts';

interface ExportOptions {
  session: string;
  out: string;
  redact?: Selector[];
  checkpoint?: string;
  vkey?: string;
  replace?: true;
  report?: string;
}

interface VerifyOptions extends WitnessOptions {
  vkey?: string;
  checkpoint?: string;
}

function parseRedaction(text: string): Selector[] {
  const parsed = parseSelectors(text);
  if (!parsed) throw new InvalidArgumentError(`What is redacted is ${SELECTORS_HELP}.`);
  return parsed;
}

const countTexts = ({ disclosed, redacted, erased }: SeenStream): string =>
  `${disclosed} texts disclosed, ${redacted} redacted, ${erased} erased`;

/** Writes the report of a session to a new file, or over an existing one with `replace`. */
async function writeReportFile(
  { operator, signal }: CliContext,
  request: ReportRequest,
  { file, replace }: { file: string; replace?: boolean | undefined },
): Promise<void> {
  await writeCompleteFile(file, { replace }, async (target) => {
    const stores = { ...operator, tiles: await operator.tiles() };
    for await (const piece of renderSessionReport(stores, request, signal))
      await target.writeFile(piece);
  });
}

/**
 * Reads the last event of a session. Requires the events that the read models show, if there are any:
 * the end of a session may be lost.
 */
async function readHead(
  { operator, signal }: Pick<CliContext, 'operator' | 'signal'>,
  session: string,
): Promise<StoredEvent> {
  const isFollowed = (await operator.followedLog()) !== undefined;
  // The row is read first, because a session may get events between the two reads.
  const row = isFollowed ? await (await operator.readModels()).findSession(session) : undefined;
  const read = { read: () => headOfSession(operator.store, session), findFlaw };
  return readUntilComplete(operator, sessionStream(session), read, { signal });

  function findFlaw({ revision }: StoredEvent): StreamFlaw | undefined {
    const next = revision + 1;
    return row && row.revision >= next
      ? { reason: `revision ${next} is missing`, revision: next }
      : undefined;
  }
}

async function exportBundle(context: CliContext, options: ExportOptions): Promise<void> {
  const { operator, output, progress, signal } = context;
  const { session, out, redact = [], report } = options;
  if (report !== undefined && resolve(report) === resolve(out))
    throw usageError('--out and --report name the same file.');
  for (const file of report === undefined ? [out] : [out, report])
    await requireWritable(file, options);
  const head = await readHead(context, session);
  const { metadata } = decodeEvent(head);
  const { proof, vkey, consistency } = await proveForExport(context, head, options);
  const began = performance.now();
  const stream = sessionStream(session);
  const { small, last, seen } = bundleContent({
    session_id: session,
    head: { revision: head.revision, hash: metadata.hash },
    proof,
    vkey,
    consistency,
    proveLeaf: createLeafProver(
      await operator.tiles(),
      parseCheckpoint(parseNote(proof.checkpoint).text),
    ),
    shown: readDisclosed(operator.store, stream, head.revision, signal),
    redaction: createRedaction(redact),
  });
  async function* withProgress(): AsyncGenerator<string> {
    for await (const piece of last.pieces) {
      progress.update(() => `${seen.events} events exported, ${formatRate(seen.events, began)}`);
      yield piece;
    }
    const actor = { account_id: metadata.account_id, key_id: 'operator', request_id: 'cli' };
    await recordAudit(operator, actor, { action: 'export', subject: stream });
  }
  const modified = new Date(metadata.recorded_at);
  await writeBundleFile(out, {
    small,
    last: { ...last, pieces: withProgress() },
    modified,
    replace: options.replace,
    signal,
  });
  progress.end(`${seen.events} events exported`);
  if (report !== undefined) {
    const made_at = isoTime(recordingTime(operator.clock));
    // A redaction is consumed by its events; the agent's texts are withheld where any text is.
    const redaction = redact.length > 0 ? createRedaction(redact) : undefined;
    const request = { session_id: session, made_at, proof, vkey, last: head.revision, redaction };
    await writeReportFile(context, request, { file: report, replace: options.replace });
  }
  const { disclosed, redacted, erased } = seen;
  output.show(
    { file: out, session_id: session, events: seen.events, disclosed, redacted, erased, vkey },
    `${out} has the ${seen.events} events of ${session}: ${countTexts(seen)}.`,
    `Verifiers need this key from another source than the bundle: ${vkey}`,
  );
}

const OWN_KEY =
  'The key is the bundle’s own, which proves nothing by itself: compare it with the one that the log’s operator publishes, or give that with --vkey.';

/** The verdict on a valid bundle, as text. */
function verdictLines(bundle: VerifiedBundle, isKeyGiven: boolean): string[] {
  const { session_id, seen, checkpoint, index, vkey, extends: older } = bundle;
  const hidden = seen.hidden.map(
    ({ revision, field, why }) => `  revision ${revision}: ${field} is ${why}`,
  );
  const more = seen.redacted + seen.erased - hidden.length;
  return [
    `It fits: ${seen.events} events of ${session_id}; ${countTexts(seen)}.`,
    ...hidden,
    ...(more > 0 ? [`  and ${more} more`] : []),
    `Each of them is in the tree of ${checkpoint.size} leaves that ${vkey} has signed; the last one is leaf ${index}.`,
    ...(older === undefined ? [] : [`That tree extends the one of ${older} leaves.`]),
    ...describeCosigners(bundle),
    ...(isKeyGiven ? [] : [OWN_KEY]),
  ];
}

/** The exit code is 1 for an invalid bundle. */
async function verifyBundleFile(
  terminal: TerminalContext,
  file: string,
  { vkey, checkpoint, ...options }: VerifyOptions,
): Promise<void> {
  const { output, progress, signal } = terminal;
  const policy = parseWitnessPolicy(options);
  const checkpointText = checkpoint === undefined ? undefined : await readTextFile(checkpoint);
  const began = performance.now();
  const onProgress = (events: number): void => {
    signal.throwIfAborted();
    progress.update(() => `${events} events verified, ${formatRate(events, began)}`);
  };
  await showVerdict(terminal, async () => {
    const trusted = { vkey, checkpoint: checkpointText, ...policy };
    const bundle = await verifyBundle(readBundleFile(file), trusted, onProgress);
    const { seen, session_id, index, cosigned, not_cosigned, extends: older } = bundle;
    progress.end(`${seen.events} events verified`);
    const data = {
      session_id,
      ...seen,
      index,
      checkpoint: presentCheckpoint(bundle.checkpoint),
      ...(older !== undefined && { extends: older }),
      cosigned,
      not_cosigned,
      vkey: bundle.vkey,
    };
    output.show(
      { fits: true, vkey_given: vkey !== undefined, ...data },
      ...verdictLines(bundle, vkey !== undefined),
    );
  });
}

/** `audit export` and `verify-bundle` */
export function addBundleCommands(audit: Command, run: WithOperator, alone: WithTerminal): void {
  audit
    .command('export')
    .description('write a session, with the proof that it is in the log, to a bundle file')
    .requiredOption('--session <session_id>', 'the session')
    .requiredOption('--out <file>', 'the file, which must not exist yet')
    .option('--replace', 'replace an existing file, once the new one is complete')
    .option('--report <file>', 'also write it as an HTML page for people')
    .option('--redact <what>', `comma-separated: ${SELECTORS_HELP}`, parseRedaction)
    .option('--checkpoint <file>', 'prove it under this checkpoint, or that the newest extends it')
    .option(
      '--vkey <vkey>',
      'the key that signed that; default: the one that signs here',
      parseVkeyOption,
    )
    .action((options: ExportOptions) => run((context) => exportBundle(context, options)));
  const verify = audit
    .command('verify-bundle')
    .description('verify a bundle file; needs no service, store or configuration')
    .argument('<file>')
    .option('--vkey <vkey>', 'the log’s key, as its operator publishes it', parseVkeyOption)
    .option(
      '--checkpoint <file>',
      'a checkpoint of the log that must be the bundle’s, or one that it extends',
    );
  addWitnessOptions(verify).action((file: string, options: VerifyOptions) =>
    alone((terminal) => verifyBundleFile(terminal, file, options)),
  );
}
