import { InvalidArgumentError, type Command } from 'commander';
import { LATE_MS } from '../../../shared/erasure/retention/judgeClock.ts';
import { retentionCutoff } from '../../../shared/erasure/retention/requireErasable.ts';
import {
  confirmErasures,
  confirmTime,
  readKeptTime,
} from '../../../shared/erasure/retention/retentionStreams.ts';
import { parseDate, parseTime } from '../../../shared/lib/time/parseTime.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import type { Operator } from '../../compose/operator/operator.ts';
import { requireAccount } from './limits.ts';
import type { CliContext, WithOperator } from '../context.ts';
import { usageError } from '../failure.ts';
import { parseShortReason } from '../reason.ts';

/** A date is that of any time zone. */
const DATE_TOLERANCE_MS = 36 * 3_600_000;
const NOON_MS = 12 * 3_600_000;

/** A time, or noon of a date in UTC, in milliseconds since the epoch. */
export function parseToday(text: string): number {
  const date = parseDate(text);
  const time = date === undefined ? parseTime(text) : date + NOON_MS;
  if (time === undefined)
    throw new InvalidArgumentError(
      'Today is a date, such as 2026-11-25, or a time of RFC 3339, such as 2026-11-25T09:30:00+01:00.',
    );
  return time;
}

async function showTime({ operator, output }: CliContext): Promise<void> {
  const keptTime = await readKeptTime(operator);
  const now = operator.clock.now();
  const proven_time = keptTime ? isoTime(keptTime.time) : null;
  output.show(
    { proven_time, clock: isoTime(now), late_ms: keptTime ? now - keptTime.time : null },
    `proven time, as last recorded: ${proven_time ?? '-'}`,
    `clock of this machine: ${isoTime(now)}`,
  );
}

/**
 * Records that an operator confirmed the time of this machine's clock, and resolves with it. The operator
 * states the date, so that no script confirms a wrong clock. Throws `configuration_invalid` for another
 * date than the clock's.
 */
export async function confirmToday(
  operator: Operator,
  today: number,
  reason: string,
): Promise<number> {
  const now = operator.clock.now();
  if (!(Math.abs(now - today) <= DATE_TOLERANCE_MS))
    throw new TurnlogError(
      'configuration_invalid',
      `The clock of this machine says ${isoTime(now)}. Set it right first.`,
    );
  await confirmTime(operator, now, reason);
  return now;
}

async function confirmClock(
  { operator, output }: CliContext,
  { reason, today }: { reason: string; today?: number },
): Promise<void> {
  if (today === undefined)
    throw usageError('State the date of today, from another clock than this: --today <date>.');
  const time = isoTime(await confirmToday(operator, today, reason));
  output.show({ proven_time: time, reason }, `Retention counts from ${time} on.`);
}

/** Confirms the erasures of an account, or of all that have a maximum. */
async function confirmAccounts(
  { operator, output }: CliContext,
  which: string,
  reason: string,
): Promise<void> {
  const readModels = await operator.readModels();
  const accounts =
    which === 'all' ? await readModels.listAccounts() : [await requireAccount(readModels, which)];
  const now = (await readKeptTime(operator))?.time ?? operator.clock.now();
  const confirmed = accounts.flatMap(({ account_id, retention }) =>
    retention.maximum_days === undefined
      ? []
      : [{ account_id, before: retentionCutoff(retention.maximum_days, now) }],
  );
  if (confirmed.length === 0)
    throw new TurnlogError(
      'configuration_invalid',
      which === 'all'
        ? 'No account has a maximum: retention erases nothing.'
        : `The account ${which} has no maximum: retention erases nothing of it.`,
    );
  for (const { account_id, before } of confirmed)
    await confirmErasures(operator, account_id, before, reason);
  const shown = confirmed.map(({ account_id, before }) => ({
    account_id,
    before: isoTime(before),
    reason,
  }));
  output.show(
    which === 'all' ? shown : shown[0]!,
    ...shown.map(
      ({ account_id, before }) =>
        `Sessions of ${account_id} that were last active before ${before} will be erased.`,
    ),
  );
}

/** `retention show` and `confirm` */
export function addRetentionCommands(program: Command, run: WithOperator): void {
  const retention = program
    .command('retention')
    .description('show the time that retention counts by, and confirm what it asks about');
  retention
    .command('show')
    .description(
      `print the proven time as last recorded; health is degraded while it is ${LATE_MS / 86_400_000} day behind the clock`,
    )
    .action(() => run(showTime));
  retention
    .command('confirm')
    .description(
      'confirm that the clock is right, or that many sessions may be erased at once; recorded in the log',
    )
    .argument('<what>', '`clock`, the id of an account, or `all` accounts')
    .requiredOption('--reason <text>', 'why; never erased, so no personal data', parseShortReason)
    .option('--today <date>', 'with `clock`: the date of today, as 2026-11-25', parseToday)
    .action((what: string, options: { reason: string; today?: number }) =>
      run((context) =>
        what === 'clock'
          ? confirmClock(context, options)
          : confirmAccounts(context, what, options.reason),
      ),
    );
}
