import { InvalidArgumentError, Option, type Command } from 'commander';
import { issueKey, revokeKey } from '../../../shared/accounts/commands.ts';
import {
  ACCOUNT_SCOPES,
  MANAGEMENT_SCOPES,
  PROCESS_SCOPES,
  SCOPES,
  type Scope,
} from '../../../shared/accounts/events.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ApiKeyRow } from '../../../shared/readModels/tables.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { MIB } from '../../../shared/lib/units.ts';
import { requireAccount } from './limits.ts';
import type { Operator } from '../../compose/operator/operator.ts';
import type { WithOperator } from '../context.ts';
import { usageError } from '../failure.ts';

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function parseScopes(text: string): Scope[] {
  const scopes = text.split(',');
  const unknown = scopes.filter((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown.length > 0) throw new InvalidArgumentError(`Scopes are ${SCOPES.join(', ')}.`);
  return scopes as Scope[];
}

/** Milliseconds of `30d`, `12h` or `15m`. */
function parseDuration(text: string): number {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(text);
  if (!match)
    throw new InvalidArgumentError(
      'A duration is a number of minutes, hours or days: 15m, 12h, 30d.',
    );
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** The named account, or else the only one. */
async function resolveAccount(
  readModels: ReadModels,
  accountId: string | undefined,
): Promise<string> {
  if (accountId !== undefined) return (await requireAccount(readModels, accountId)).account_id;
  const accounts = await readModels.listAccounts();
  if (accounts.length === 1) return accounts[0]!.account_id;
  throw new TurnlogError(
    'configuration_invalid',
    accounts.length === 0
      ? 'There is no account yet: accounts open <name>.'
      : 'There are several accounts: name one with --account (`accounts list` lists them).',
  );
}

const PAGE = { limit: 1_000, bytes: 4 * MIB };

async function listKeys(readModels: ReadModels, accountId: string): Promise<ApiKeyRow[]> {
  const rows: ApiKeyRow[] = [];
  for (let more = true; more;) {
    const after = rows.at(-1)?.key_id;
    const page = { ...PAGE, ...(after !== undefined && { after }) };
    const keyPage = await readModels.listApiKeys(accountId, page);
    rows.push(...keyPage.rows);
    ({ more } = keyPage);
  }
  return rows;
}

/**
 * Brings the read models up to date, so that a running service accepts the new key when the command
 * ends. The key is recorded and printed by then, so failures are ignored. Ctrl-C ends the wait.
 */
async function waitUntilAccepted({
  openReadModels,
}: Pick<Operator, 'openReadModels'>): Promise<void> {
  const readModels = await openReadModels().catch(() => undefined);
  await readModels?.close();
}

/** A key without its hash. */
const presentKey = ({ hash: _hash, revision: _revision, ...shown }: ApiKeyRow) => shown;

const describeState = ({ revoked_at, expires_at }: Pick<ApiKeyRow, 'revoked_at' | 'expires_at'>) =>
  revoked_at ? `revoked ${revoked_at}` : expires_at ? `expires ${expires_at}` : 'valid';

/** `keys issue`, `list` and `revoke`. */
export function addKeyCommands(program: Command, run: WithOperator): void {
  const keys = program.command('keys').description('issue, list and revoke API keys');
  const account = ['--account <account_id>', 'the account; required if there are several'] as const;

  keys
    .command('issue')
    .description('issue an API key and print it; it is not shown again')
    .option(...account)
    .option('--name <name>', 'for people', 'unnamed')
    .addOption(
      new Option('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`)
        .argParser(parseScopes)
        .default(
          [...ACCOUNT_SCOPES],
          `all but ${[...PROCESS_SCOPES, ...MANAGEMENT_SCOPES].join(', ')}`,
        ),
    )
    .option('--expires-in <duration>', '15m, 12h, 30d; default: never', parseDuration)
    .action((options: { account?: string; name: string; scopes: Scope[]; expiresIn?: number }) =>
      run(async ({ operator, output }) => {
        const account_id = await resolveAccount(await operator.readModels(), options.account);
        const expiresAt =
          options.expiresIn === undefined ? null : operator.clock.now() + options.expiresIn;
        const { key_id, api_key } = await issueKey(
          operator,
          { account_id, key_id: 'operator', request_id: 'cli' },
          { name: options.name, scopes: options.scopes, expiresAt },
        );
        output.show({ account_id, key_id, api_key }, api_key);
        await waitUntilAccepted(operator);
      }),
    );

  keys
    .command('list')
    .description('list the keys of an account')
    .option(...account)
    .action((options: { account?: string }) =>
      run(async ({ operator, output }) => {
        const readModels = await operator.readModels();
        const account_id = await resolveAccount(readModels, options.account);
        output.table((await listKeys(readModels, account_id)).map(presentKey), {
          KEY: ({ key_id }) => key_id,
          ISSUED: ({ issued_at }) => issued_at,
          STATE: describeState,
          SCOPES: ({ scopes }) => scopes.join(','),
          NAME: ({ name }) => name,
        });
      }),
    );

  keys
    .command('revoke')
    .description('revoke a key; a running server rejects it within a second')
    .argument('<key_id>')
    .action((keyId: string) =>
      run(async ({ operator, output }) => {
        const key = await (await operator.readModels()).findApiKey(keyId);
        if (!key) throw new TurnlogError('configuration_invalid', `There is no key ${keyId}.`);
        const revoked = await revokeKey(
          operator,
          { account_id: key.account_id, key_id: 'operator', request_id: 'cli' },
          keyId,
        );
        const already = revoked === undefined;
        output.show(
          { key_id: keyId, account_id: key.account_id, already_revoked: already },
          already ? `${keyId} was revoked already` : `${keyId} is revoked`,
        );
      }),
    );

  // It could mean either: a guess would rewrap every key of texts.
  keys
    .command('rotate', { hidden: true })
    .allowExcessArguments()
    .allowUnknownOption()
    .action(() => {
      throw usageError(
        'There is no command keys rotate. To wrap the keys of texts again: text-keys rotate. To replace an API key: POST /v1/keys/{keyId}/rotate.',
      );
    });
}
