import type { Command } from 'commander';
import { recordAudit } from '../../../shared/audit/commands.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { readReceipt } from '../../../shared/transparency/receipts/readReceipt.ts';
import {
  verifyReceipt,
  type VerifiedReceipt,
} from '../../../shared/transparency/receipts/verifyReceipt.ts';
import { writeCompleteFile } from '../../compose/operator/operator.ts';
import type { CliContext, TerminalContext, WithOperator, WithTerminal } from '../context.ts';
import { parseVkeyOption, readOwnHead, readVkeys, signingVkey } from './checkpoints.ts';
import { readTextFile } from '../textFile.ts';
import { requireWritable } from './headsFile.ts';
import { presentCheckpoint, showVerdict } from './verdict.ts';
import { addWitnessOptions, parseWitnessPolicy, describeCosigners } from './witnessOptions.ts';
import type { WitnessOptions } from './witnessOptions.ts';

/** The prefix of an id names the kind of its stream; only accounts differ. */
export const streamOfId = (id: string): string => {
  const prefix = id.slice(0, Math.max(0, id.indexOf('_')));
  return `${prefix === 'acct' ? 'account' : prefix}-${id}`;
};

async function showReceipt(
  { operator, output }: CliContext,
  id: string,
  { out }: { out?: string },
): Promise<void> {
  if (out !== undefined) await requireWritable(out);
  const stream = streamOfId(id);
  const receipt = await readReceipt({ ...operator, tiles: await operator.tiles() }, stream);
  if (!receipt) throw new TurnlogError('configuration_invalid', `${id} is unknown, or not erased.`);
  const { account_id } = receipt.event.metadata;
  const actor = { account_id, key_id: 'operator', request_id: 'cli' };
  await recordAudit(operator, actor, { action: 'proof', subject: stream, detail: 'receipt' });
  if (out === undefined) return output.stream(receipt);
  const head = await readOwnHead(operator);
  const { vkeys } = await readVkeys(operator, head?.origin);
  const vkey = head ? signingVkey(head.note, vkeys) : vkeys[0];
  await writeCompleteFile(out, {}, (target) =>
    target.writeFile(`${JSON.stringify(receipt, null, 2)}\n`),
  );
  output.show(
    { file: out, subject: receipt.subject, events: receipt.events, vkey },
    `${out} has the receipt of ${id}: ${receipt.events} events, leaf ${receipt.leaf.index}.`,
    `A verifier must get this key from another source than the receipt: ${vkey}`,
  );
}

/** The content of a valid receipt, as text. */
function verdictLines(receipt: VerifiedReceipt): string[] {
  const { subject, events, event, index, checkpoint, vkey } = receipt;
  const { recorded_at, key_id, account_id } = event.metadata;
  const { reason, note } = event.data as { reason: string; note?: string };
  return [
    `It fits: the ${subject.kind} ${subject.id} was erased, with the texts of its ${events} events.`,
    `By ${key_id} of ${account_id}, at ${recorded_at}; the reason: ${reason}${note === undefined ? '' : ` (${note})`}.`,
    `Its erasure is event ${event.id}, revision ${event.revision}, hash ${event.metadata.hash}.`,
    `That is leaf ${index} of the ${checkpoint.size} leaves that ${vkey} has signed.`,
    ...describeCosigners(receipt),
  ];
}

/** The exit code is 1 for an invalid receipt. */
async function verifyReceiptFile(
  terminal: TerminalContext,
  file: string,
  options: WitnessOptions & { vkey: string },
): Promise<void> {
  const policy = parseWitnessPolicy(options);
  const text = await readTextFile(file);
  await showVerdict(terminal, () => {
    const receipt = verifyReceipt(text, { vkey: options.vkey, ...policy });
    const { data, metadata, id, revision } = receipt.event;
    const { reason, note } = data as Partial<Record<'reason' | 'note', unknown>>;
    const { subject, events, index, vkey, cosigned, not_cosigned }: VerifiedReceipt = receipt;
    terminal.output.show(
      {
        fits: true,
        subject,
        events,
        event: { id, revision, hash: metadata.hash },
        erased_at: metadata.recorded_at,
        erased_by: { account_id: metadata.account_id, key_id: metadata.key_id },
        reason,
        ...(note !== undefined && { note }),
        index,
        checkpoint: presentCheckpoint(receipt.checkpoint),
        cosigned,
        not_cosigned,
        vkey,
      },
      ...verdictLines(receipt),
    );
  });
}

/** `audit receipt` and `verify-receipt` */
export function addReceiptCommands(audit: Command, run: WithOperator, alone: WithTerminal): void {
  audit
    .command('receipt')
    .description('print or write the receipt of an erasure: what was erased, and the proof of it')
    .argument('<id>', 'of the erased session, agent, account, webhook or replay')
    .option('--out <file>', 'the file, which must not exist yet')
    .action((id: string, options: { out?: string }) =>
      run((context) => showReceipt(context, id, options)),
    );
  const verify = audit
    .command('verify-receipt')
    .description('verify a receipt of an erasure; needs no service, store or configuration')
    .argument('<file>')
    .requiredOption(
      '--vkey <vkey>',
      'the log’s key, as its operator publishes it',
      parseVkeyOption,
    );
  addWitnessOptions(verify).action((file: string, options: WitnessOptions & { vkey: string }) =>
    alone((terminal) => verifyReceiptFile(terminal, file, options)),
  );
}
