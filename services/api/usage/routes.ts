import { readUsage, type UsageEntry } from '../../../shared/usage/queries.ts';
import { untilClosed } from '../http/connection/clientDisconnect.ts';
import { MAKING_BYTES, pageBody } from '../http/responses/listResponse.ts';
import { presentUsage } from './presenter.ts';
import { defineRoute } from '../http/route.ts';
import { Usage, UsageQuery } from './schemas.ts';
import { cursorOf, usageQuestion } from './parseUsageQuery.ts';

export const listUsageRoute = defineRoute({
  method: 'get',
  path: '/v1/usage',
  operationId: 'listUsage',
  summary: "Adds up what the account's runs took",
  description:
    'Runs count once they have ended, on the day of their end in UTC, with all their model and tool calls. Those of erased sessions count on. A cost is that of the tokens at the prices of now.',
  access: 'sessions:read',
  query: UsageQuery,
  data: Usage,
  errors: ['position_unknown'],
  holds: MAKING_BYTES,
  handle: async ({ readModels, catalogue: { models } }, { actor, query }, ctx) => {
    const question = usageQuestion(query);
    const source = { readModels, models };
    const page = await readUsage(source, actor.account_id, question, untilClosed(ctx.res));
    const rows = {
      around: [],
      present: (entry: UsageEntry) => presentUsage(entry, question.by),
      cursorOf,
    };
    return { page: (to) => pageBody(page, rows, to) };
  },
});
