import { LRUCache } from 'lru-cache';
import { withEmptyTexts } from '../eventlog/encryption/openTexts.ts';
import { reportDamage, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { isFull } from '../eventlog/reading/wholeStream.ts';
import { accountStream } from '../eventlog/streams.ts';
import { yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import type { ReadOptions, StoredEvent } from '../ports/eventStore.ts';
import type { DamagedRow } from '../readModels/integrity/damagedRows.ts';
import { differingColumn } from '../readModels/integrity/compareRows.ts';
import { LOOK_AGAIN_MS, type RowFindings } from '../readModels/integrity/rowFindings.ts';
import { applyToRows, noRows, type StreamRows } from '../readModels/integrity/streamRows.ts';
import type { AccountRow, ApiKeyRow } from '../readModels/tables.ts';

/** Rows of all known accounts. */
const MAX_ROWS = 50_000;
/** A page is checked and applied in one step of some milliseconds. */
const PAGE_EVENTS = 128;
/** No text of an account is decrypted for a check, so that a lost key locks no client out. */
const TEXTS = ['name'];

type Place = Pick<DamagedRow, 'table' | 'key'>;

/** The rows of an account as the log defines them, as far as this process has read it. */
interface KnownAccount extends StreamRows {
  /** When this process read the last event, and when it looked for a later one. */
  learnedAt: number;
  lookedAt: number;
  reading: Promise<void> | undefined;
}

/** Checks rows of accounts and API keys against the log. */
interface AccountRowChecks {
  /**
   * Resolves with the key as the log has it: revoked where the log says so and the row does not yet.
   * Rejects with `read_model_damaged` for a row that no event explains, `stream_damaged` for events
   * that do not fit their leaves, `store_unavailable`.
   */
  checkKey(row: ApiKeyRow): Promise<ApiKeyRow>;
  /**
   * The same for the account's own row; a damaged one is recorded, and what the log says holds.
   * Resolves with undefined for an account that the log does not have.
   */
  checkAccount(row: AccountRow): Promise<AccountRow | undefined>;
  /** Forgets what was read of an account, or of all when the log or the read models were replaced. */
  forget(accountId?: string): void;
}

/**
 * Checks rows against the account's stream, which is read once and then followed when a row is new or
 * the last look was some seconds ago. `now` returns milliseconds of a monotonic clock.
 */
export function createAccountRowChecks(
  source: StreamSource,
  findings: RowFindings,
  now: () => number,
): AccountRowChecks {
  const accounts = new LRUCache<string, KnownAccount>({
    maxSize: MAX_ROWS,
    sizeCalculation: ({ rows }) => rows.api_keys.size + 1,
  });

  /** Reads events of an account, which decide about access: each has to fit its leaf. */
  async function readEvents(accountId: string, page: ReadOptions): Promise<StoredEvent[]> {
    const stream = accountStream(accountId);
    const events = await source.store.readStream(stream, page);
    const flaw = await source.store.leaves?.findFlaw(events, { mustCompare: true });
    if (flaw) throw await reportDamage(source, stream, flaw);
    const [first, last] = [events[0], events.at(-1)];
    if (first && last) source.damaged.clear(stream, { from: first.revision, to: last.revision });
    return events;
  }

  async function readOn(accountId: string, account: KnownAccount): Promise<void> {
    for (;;) {
      account.lookedAt = now();
      const page = {
        direction: 'forwards',
        limit: PAGE_EVENTS,
        maxBytes: LIMITS.store.pageBytes,
      } as const;
      const from = account.revision + 1;
      const events = await readEvents(accountId, { ...page, from });
      applyToRows(account, events.map(withEmptyTexts));
      if (account.revision < from) return;
      account.learnedAt = now();
      // An account that was forgotten meanwhile is read again by the next request.
      if (accounts.peek(accountId) === account) accounts.set(accountId, account);
      if (!isFull({ ...page, events })) return;
      // Reads of an embedded log don't wait: a long stream would keep the event loop busy.
      await yieldToEventLoop(accountId);
    }
  }

  /** Concurrent callers share one read. */
  const follow = (accountId: string, known: KnownAccount): Promise<void> =>
    (known.reading ??= readOn(accountId, known).finally(() => {
      known.reading = undefined;
    }));

  /** The account at the row's revision at least. Rejects with `read_model_damaged`. */
  async function accountOf(
    place: Place,
    { account_id, revision }: Pick<AccountRow, 'account_id' | 'revision'>,
  ): Promise<KnownAccount> {
    const started = { learnedAt: 0, lookedAt: 0, reading: undefined };
    const account = accounts.get(account_id) ?? { ...noRows(), ...started };
    // Before it is read, so that requests that come meanwhile wait for that read.
    if (account.revision < 0) accounts.set(account_id, account);
    if (account.revision >= revision) {
      if (now() - account.lookedAt > LOOK_AGAIN_MS)
        void follow(account_id, account).catch(() => undefined);
      return account;
    }
    await findings.untilSeen(place, async () => {
      await follow(account_id, account);
      return account.revision >= revision;
    });
    return account;
  }

  /** Judges a row beside what the log says of it; `expected` is undefined when it says nothing. */
  function judge<Row extends AccountRow | ApiKeyRow>(
    place: Place,
    row: Row,
    { account, expected }: { account: KnownAccount; expected: Row | undefined },
  ): Row {
    if (!expected) throw findings.differs(place, 'unrecorded');
    if (row.revision < expected.revision) {
      void findings.outdated(place, account.position!, account.learnedAt);
      return { ...expected, name: row.name };
    }
    const column = differingColumn(expected, row, TEXTS);
    if (column !== undefined) throw findings.differs(place, column);
    findings.matches(place);
    return row;
  }

  return {
    async checkKey(row) {
      const { key_id, account_id } = row;
      const place = { table: 'api_keys', key: key_id };
      const account = await accountOf(place, row);
      const expected = account.rows.api_keys.get(key_id);
      // The erasure of an account removes its keys; the read models may not show that yet.
      if (!expected && account.rows.accounts.get(account_id)?.erased) {
        void findings.outdated(place, account.position!, account.learnedAt);
        return { ...row, revoked_at: row.revoked_at ?? row.issued_at };
      }
      return judge(place, row, { account, expected });
    },
    async checkAccount(row) {
      const place = { table: 'accounts', key: row.account_id };
      try {
        const account = await accountOf(place, row);
        const expected = account.rows.accounts.get(row.account_id);
        return judge(place, row, { account, expected });
      } catch (error) {
        if (!isTurnlogError(error, 'read_model_damaged')) throw error;
        const expected = accounts.get(row.account_id)?.rows.accounts.get(row.account_id);
        return expected && { ...expected, name: row.name };
      }
    },
    forget: (accountId) =>
      void (accountId === undefined ? accounts.clear() : accounts.delete(accountId)),
  };
}
