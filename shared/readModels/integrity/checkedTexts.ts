import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { isEncryptedText } from '../../eventlog/encryption/encryptedText.ts';
import type { ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import { sha256 } from '../../eventlog/hashChain.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { readRecordedOwner } from '../../eventlog/reading/streamOwner.ts';
import type { TranscriptRows } from '../../sessions/sqlQueries.ts';
import { replayStream, sessionStream, webhookStream } from '../../eventlog/streams.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import { encryptedTextsOf } from '../../sessions/history/transcript.ts';
import type { ReplaySettingsRow, TurnRow, WebhookRow } from '../tables.ts';
import { differingColumn } from './compareRows.ts';
import type { RowFindings } from './rowFindings.ts';
import { noRows, readStreamRows, type StreamRows } from './streamRows.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

const MAX_RECORDED = 10_000;
/** Rows of a long list that are checked in one turn of the event loop. */
const CHECKED_AT_ONCE = 100;

type Checked = Pick<
  ReadModels,
  'findTranscript' | 'findWebhook' | 'listWebhooks' | 'listEnabledWebhooks' | 'findReplaySettings'
>;

interface RowWithTexts<Row> {
  table: 'turns' | 'webhooks' | 'replay_settings';
  id: (row: Row) => string;
  stream: (row: Row) => string;
  texts: (row: Row) => readonly string[];
}

const TURN: RowWithTexts<TurnRow> = {
  table: 'turns',
  id: ({ session_id, turn }) => `${session_id}/${turn}`,
  stream: ({ session_id }) => sessionStream(session_id),
  texts: encryptedTextsOf,
};
const WEBHOOK: RowWithTexts<WebhookRow> = {
  table: 'webhooks',
  id: ({ webhook_id }) => webhook_id,
  stream: ({ webhook_id }) => webhookStream(webhook_id),
  texts: ({ url, secret, erased }) => (erased ? [] : [url, secret]),
};
const REPLAY: RowWithTexts<ReplaySettingsRow> = {
  table: 'replay_settings',
  id: ({ replay_id }) => replay_id,
  stream: ({ replay_id }) => replayStream(replay_id),
  texts: ({ settings }) =>
    [settings.instruction, settings.checks].filter((text) => text !== undefined),
};

/**
 * Checks that rows name the accounts that the log says they belong to: an account is shown their texts,
 * and sent its events. The owners are kept in memory.
 */
function createOwnerCheck(store: Pick<ProtectedStore, 'readStream'>, findings: RowFindings) {
  const owners = new LRUCache<string, string>(entriesUpTo(MAX_RECORDED));
  return async (
    place: { table: 'sessions' | 'webhooks'; key: string },
    stream: string,
    { account_id }: { account_id: string },
  ): Promise<void> => {
    const owner = owners.get(stream) ?? (await readRecordedOwner({ store }, stream));
    if (owner !== undefined) owners.set(stream, owner);
    if (owner !== undefined && owner !== account_id) throw findings.differs(place, 'account_id');
  };
}

const checked =
  <Arguments extends unknown[], Found>(
    query: (...args: Arguments) => Promise<Found>,
    checkFound: (found: Found) => Promise<void>,
  ) =>
  async (...args: Arguments): Promise<Found> => {
    const result = await query(...args);
    await checkFound(result);
    return result;
  };

/**
 * Wraps the queries of rows whose texts are encrypted, as they are in the log. A plain text in such a
 * row is shown only if the log has it, as logs of early releases do: an account that can write to the database
 * of the read models has no key to encrypt another one. Transcripts and lists of webhooks are of the
 * account that the log says. The queries reject with `read_model_damaged`
 * then.
 */
export function withCheckedTexts<Queries extends Checked>(
  queries: Queries,
  store: Pick<ProtectedStore, 'readStream' | 'keys'>,
  findings: RowFindings,
): Queries {
  /** Hashes of rows with plain texts that the log has; the texts may be erased any time. */
  const recorded = new LRUCache<string, string>(entriesUpTo(MAX_RECORDED));

  // Two caches: the list of enabled webhooks, read again and again, would evict all sessions.
  const checkSessionOwner = createOwnerCheck(store, findings);
  const checkWebhookOwner = createOwnerCheck(store, findings);

  async function checkWebhooks(rows: readonly WebhookRow[]): Promise<void> {
    for (const row of rows)
      await checkWebhookOwner({ table: 'webhooks', key: row.webhook_id }, WEBHOOK.stream(row), row);
    await check(WEBHOOK, rows);
  }

  /** Without those that the log gives to another account, which are named: the others continue. */
  async function ownWebhooks(rows: readonly WebhookRow[]): Promise<WebhookRow[]> {
    const own: WebhookRow[] = [];
    for (const [index, row] of rows.entries())
      try {
        if (index > 0 && index % CHECKED_AT_ONCE === 0) await setImmediate();
        await checkWebhooks([row]);
        own.push(row);
      } catch (error) {
        if (!isTurnlogError(error, 'read_model_damaged')) throw error;
      }
    return own;
  }

  async function checkTranscript({ session, turns }: TranscriptRows): Promise<void> {
    const { session_id } = session;
    await checkSessionOwner(
      { table: 'sessions', key: session_id },
      sessionStream(session_id),
      session,
    );
    await check(TURN, turns.rows);
  }

  async function check<Row extends { revision: number }>(
    kind: RowWithTexts<Row>,
    rows: readonly Row[],
  ): Promise<void> {
    const plain = rows
      .filter((row) => kind.texts(row).some((text) => !isEncryptedText(text)))
      .toSorted((a, b) => a.revision - b.revision);
    /** Each stream is read once, and each of its rows compared at its revision. */
    const read = new Map<string, StreamRows>();
    for (const row of plain) {
      const place = { table: kind.table, key: kind.id(row) };
      const id = `${place.table} ${place.key}`;
      const hash = sha256(canonicalJson(row));
      if (recorded.get(id) === hash) continue;
      const stream = kind.stream(row);
      const state = read.get(stream) ?? noRows();
      read.set(stream, await readStreamRows(store, stream, { upTo: row.revision, state }));
      const expected = state.rows[kind.table].get(place.key);
      if (!expected) throw findings.differs(place, 'unrecorded');
      const column = differingColumn(expected, row);
      if (column !== undefined) throw findings.differs(place, column);
      recorded.set(id, hash);
    }
  }

  return {
    ...queries,
    findTranscript: checked(queries.findTranscript, async (found) => {
      if (found) await checkTranscript(found);
    }),
    findWebhook: checked(queries.findWebhook, (row) => check(WEBHOOK, row ? [row] : [])),
    listWebhooks: checked(queries.listWebhooks, ({ rows }) => checkWebhooks(rows)),
    async listEnabledWebhooks(after: string, limit: number) {
      const { rows, next } = await queries.listEnabledWebhooks(after, limit);
      return { rows: await ownWebhooks(rows), next };
    },
    findReplaySettings: checked(queries.findReplaySettings, (row) =>
      check(REPLAY, row ? [row] : []),
    ),
  };
}
