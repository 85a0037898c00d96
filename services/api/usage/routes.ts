import { readUsage, type UsageEntry } from '../../../shared/usage/queries.ts';
import { responseClosedSignal } from '../http/connection/clientDisconnect.ts';
import { PAGE_BUFFER_BYTES, renderPage } from '../http/responses/listResponse.ts';
import { presentUsage } from './presenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { Usage, UsageQuery } from './schemas.ts';
import { usageCursor, parseUsageQuery } from './parseUsageQuery.ts';

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

export const usageFeature = defineFeature({
  routes: [listUsageRoute],
  tags: { usage: 'Usage of runs' },
});
