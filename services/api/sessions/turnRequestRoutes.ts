import { readRequests, type RebuiltRequest } from '../../../shared/sessions/turns/turnRequests.ts';
import type { Permit } from '../../../shared/lib/concurrency/capacity.ts';
import { wantsPretty } from '../http/responses/envelope.ts';
import { MAKING_BYTES, pageBody, type Rows } from '../http/responses/listResponse.ts';
import { presentRequest } from './turnRequestPresenter.ts';
import { SHARED_SESSION_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { TurnRequests, TurnRequestsQuery } from './turnRequestSchemas.ts';
import { pageFrom } from './routes.ts';
import { turnInPath } from '../runs/turnRoutes.ts';

/** What a byte of an event takes while a request is made of it: opened, as text, and as it is sent. */
const HELD_PER_BYTE = 4;

const REQUESTS: Rows<RebuiltRequest> = {
  around: [],
  present: presentRequest,
  cursorOf: ({ number }) => String(number),
};

const listTurnRequestsRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/turns/{turn}/requests',
  operationId: 'listTurnRequests',
  summary: 'Builds the model requests of a turn again from events',
  description:
    'One for each model call that was answered, in the order in which they were made, the call that summed older turns up right before the turn included. `matches` says whether it is the one that was sent, by the hash that was recorded then. `docs/replay.md` has the rule.',
  access: 'sessions:read',
  query: TurnRequestsQuery,
  data: TurnRequests,
  errors: ['turn_not_found', 'agent_erased', ...SHARED_SESSION_ERRORS],
  holds: MAKING_BYTES,
  handle: async (api, { actor: { account_id }, params, query }, ctx) => {
    const held: Permit[] = [];
    const hold = async (bytes: number): Promise<void> => {
      held.push(await api.answers.take(account_id, HELD_PER_BYTE * bytes, ctx.res));
    };
    try {
      const asked = { account_id, ...turnInPath(params) };
      const page = await readRequests(api, asked, { ...pageFrom(query), hold });
      const made = await pageBody(page, REQUESTS, { account_id, pretty: wantsPretty(ctx) });
      return { page: () => Promise.resolve(made) };
    } finally {
      for (const place of held) place.release();
    }
  },
});

export const turnRequestRoutes = [listTurnRequestsRoute];
