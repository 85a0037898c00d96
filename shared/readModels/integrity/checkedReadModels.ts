import { createAccountRowChecks } from '../../accounts/checkedRows.ts';
import { createAgentRowCheck } from '../../agents/checkedRows.ts';
import { streamId, streamKind } from '../../eventlog/streams.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { AgentRow } from '../tables.ts';
import type { DamagedRows } from './damagedRows.ts';
import { withCheckedTexts } from './checkedTexts.ts';
import { createRowFindings } from './rowFindings.ts';

type Checked = Parameters<typeof withCheckedTexts>[0] &
  Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash' | 'findAccount' | 'findAgent' | 'untilShown'>;

const checking =
  <Row>(
    find: (id: string) => Promise<Row | undefined>,
    check: (row: Row) => Promise<Row | undefined>,
  ) =>
  async (id: string): Promise<Row | undefined> => {
    const row = await find(id);
    return row && check(row);
  };

/**
 * Wraps the queries of rows that decide about access or instructions (API keys, accounts, agents), and
 * of rows whose texts are encrypted.
 * Each row is checked against the events of its stream before it is used, because an account with write access
 * to the database of the read models can change any row. What the log says is kept in memory, so a row
 * that is read again costs a comparison; `forget` drops what it says of a stream, or all. The queries
 * reject with `read_model_damaged`, too. `readNewAgent` reads an agent from the log alone. `now` is a
 * monotonic clock in milliseconds.
 */
export function checkedReadModels<Queries extends Checked>(
  queries: Queries,
  source: StreamSource,
  damaged: DamagedRows,
  now = (): number => performance.now(),
): Queries & {
  forget: (stream?: string) => void;
  readNewAgent: (agentId: string) => Promise<AgentRow | undefined>;
} {
  const findings = createRowFindings(damaged, queries, now);
  const accounts = createAccountRowChecks(source, findings, now);
  const agents = createAgentRowCheck(source, findings, now);
  return {
    ...withCheckedTexts(queries, source.store, findings),
    findApiKey: checking(queries.findApiKey, accounts.checkKey),
    findApiKeyByHash: checking(queries.findApiKeyByHash, accounts.checkKey),
    findAccount: checking(queries.findAccount, accounts.checkAccount),
    findAgent: checking(queries.findAgent, agents.check),
    readNewAgent: agents.readNew,
    forget(stream) {
      const kind = stream && streamKind(stream);
      const id = stream && streamId(stream);
      if (kind === undefined || kind === 'account') {
        accounts.forget(id);
        agents.forget();
      }
      if (kind === 'agent') agents.forget(id);
    },
  };
}
