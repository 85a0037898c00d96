import { setTimeout as sleep } from 'node:timers/promises';
import { openOperator, type Operator } from '../../../services/compose/operator/operator.ts';
import { issueKey, openAccount } from '../../../shared/accounts/commands.ts';
import { SCOPES, type Scope } from '../../../shared/accounts/events.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { apiClient, type Client } from '../http/service.ts';
import { testStoreEnv } from '../stores/testStore.ts';

/** Works on the stores of a running service as an operator command with these options does. */
export async function asOperatorOn<Result>(
  env: Record<string, string>,
  work: (operator: Operator) => Promise<Result>,
): Promise<Result> {
  const operator = await openOperator(parseConfig(env), createLogger('silent'));
  try {
    return await work(operator);
  } finally {
    await operator.close();
  }
}

/** The same, on a data folder. */
export const asOperator = <Result>(
  folder: string,
  work: (operator: Operator) => Promise<Result>,
): Promise<Result> => asOperatorOn({ DATA_DIR: folder, ...testStoreEnv() }, work);

/** Often enough for every test, and seldom enough for a machine that does other work meanwhile. */
const LOOK_MS = 25;

/** Asks again until the answer satisfies; a test's own time limit is the bound. */
export async function eventually<Answer>(
  ask: () => Promise<Answer>,
  satisfies: (answer: Answer) => boolean,
): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    await sleep(LOOK_MS);
  }
}

export interface IssuedKey {
  account_id: string;
  key_id: string;
  api_key: string;
}

/** The account is a new one if none is named. `expiresAt` in milliseconds since the epoch. */
interface KeyOptions {
  account?: string;
  scopes?: readonly Scope[];
  expiresAt?: number | null;
  /** Of a new account, and of the key. */
  name?: string;
}

/** Issues a key to an account. */
export const newKey = (folder: string, options: KeyOptions = {}): Promise<IssuedKey> =>
  asOperator(folder, (operator) => issueTo(operator, options));

/** The same, by an operator command that goes on. */
export async function issueTo(
  operator: Operator,
  { account, scopes = SCOPES, expiresAt = null, name }: KeyOptions = {},
): Promise<IssuedKey> {
  const account_id = account ?? operator.ids.typeId('acct');
  const actor = { account_id, key_id: 'operator', request_id: 'test' };
  if (account === undefined) await openAccount(operator, actor, name ?? 'another');
  return {
    account_id,
    ...(await issueKey(operator, actor, { name: name ?? 'test', scopes, expiresAt })),
  };
}

/** A client with that key, once the running service knows it. */
export async function clientWith(url: string, { api_key }: IssuedKey): Promise<Client> {
  const client = apiClient(url, api_key);
  await eventually(
    () => client.get('/v1/models'),
    ({ status }) => status !== 401,
  );
  return client;
}

export interface WatchedLog {
  /** The position of the last event: the same before and after means that nothing was appended. */
  head: () => Promise<Position | undefined>;
  close: () => Promise<void>;
}

/**
 * Looks at the log of a running service for the whole of a suite: opening it each time takes longer
 * than most requests.
 */
export async function watchLog(folder: string): Promise<WatchedLog> {
  const { store, close } = await openOperator(
    parseConfig({ DATA_DIR: folder, ...testStoreEnv() }),
    createLogger('silent'),
  );
  return { head: () => store.head(), close };
}
