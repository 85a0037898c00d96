import { readUsage, type UsageEntry, type UsageQuestion } from '../../../shared/usage/queries.ts';
import { responseClosedSignal } from '../http/connection/clientDisconnect.ts';
import { PAGE_BUFFER_BYTES, renderPage } from '../http/responses/listResponse.ts';
import { presentStorageUse, presentUsage } from './presenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { StorageUse, Usage, UsageQuery, DIMENSIONS } from './schemas.ts';
import type { Static } from 'typebox';
import { parseTime } from '../../../shared/lib/time/parseTime.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { unknownPageError } from '../http/errors/errorResponses.ts';
import { invalidRequestError } from '../http/errors/validation.ts';
import { USAGE_COLUMNS, type UsageColumn } from '../../../shared/usage/tables.ts';

const DEFAULT_LIMIT = 100;

function parseColumns(by: string | undefined): UsageColumn[] {
  const names = by?.split(',') ?? [];
  return USAGE_COLUMNS.filter((_column, index) => names.includes(DIMENSIONS[index]!));
}

/** The cursor of the page after an entry. */
const usageCursor = ({ values }: { values: readonly string[] }): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');

/** Throws `position_unknown` for an invalid cursor, or one of a list with other columns. */
function parseCursor(after: string, entries: number): string[] {
  try {
    const values: unknown = JSON.parse(Buffer.from(after, 'base64url').toString());
    if (
      Array.isArray(values) &&
      values.length === entries &&
      values.every((value) => typeof value === 'string')
    )
      return values;
  } catch {
    // Not JSON: rejected below.
  }
  throw unknownPageError();
}

/** The day of a time, in UTC. */
const dayOf = (time: string): string => isoTime(parseTime(time)!).slice(0, 'YYYY-MM-DD'.length);

function parseUsageQuery({
  from,
  to,
  by,
  limit = DEFAULT_LIMIT,
  after,
  agent_id,
  model,
  key_id,
  kind,
}: Static<typeof UsageQuery>): UsageQuestion {
  const columns = parseColumns(by);
  const days = { from: dayOf(from), to: dayOf(to) };
  if (days.to < days.from)
    throw invalidRequestError('query', [{ path: '/to', message: 'must not be before "from"' }]);
  return {
    ...days,
    by: columns,
    where: {
      ...(agent_id !== undefined && { agent_id }),
      ...(model !== undefined && { model }),
      ...(key_id !== undefined && { key_id }),
      ...(kind !== undefined && { kind }),
    },
    limit,
    ...(after === undefined ? {} : { after: parseCursor(after, columns.length) }),
  };
}

const listUsageRoute = defineRoute({
  method: 'get',
  path: '/v1/usage',
  operationId: 'listUsage',
  summary: "Sums up the usage of the account's runs",
  description:
    'Runs count when they have ended, on the day of their end in UTC, with all their model and tool calls. Runs of erased sessions still count. Costs use current prices.',
  access: 'sessions:read',
  query: UsageQuery,
  data: Usage,
  errors: ['position_unknown'],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async ({ readModels, catalogue: { models } }, { actor, query }, ctx) => {
    const question = parseUsageQuery(query);
    const source = { readModels, models };
    const page = await readUsage(source, actor.account_id, question, responseClosedSignal(ctx.res));
    const rows = {
      emptyData: [],
      present: (entry: UsageEntry) => presentUsage(entry, question.by),
      cursorOf: usageCursor,
    };
    return { page: (to) => renderPage(page, rows, to) };
  },
});

const readStorageRoute = defineRoute({
  method: 'get',
  path: '/v1/usage/storage',
  operationId: 'readStorageUse',
  summary: 'Returns what the account stores, and its quotas',
  description:
    'Events count from the moment they are recorded, and also after an erasure, which destroys keys and leaves the events. With several replicas, those of the others may be missing for a second.',
  access: 'sessions:read',
  query: CommonQuery,
  data: StorageUse,
  errors: ['store_unavailable'],
  handle: async ({ quotas }, { actor }) => ({
    data: presentStorageUse(await quotas.useOf(actor.account_id)),
  }),
});

export const usageFeature = defineFeature({
  routes: [listUsageRoute, readStorageRoute],
  errors: {
    quota_exceeded: {
      status: 429,
      description:
        'The account has reached a quota of what it may store, which the message names; nothing was recorded. With `Retry-After` it resets then, without it only the operator can raise it',
    },
    storage_full: {
      status: 503,
      description:
        'Too little disk space is free; nothing was recorded. Reads, cancels and erasures continue. `Retry-After` says when to try again',
    },
  },
  tags: { usage: 'Usage of runs' },
});
