import { prepareFork, forkSession } from '../../../shared/sessions/forkSession.ts';
import { presentSession } from './presenter.ts';
import { SHARED_SESSION_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { ForkBody, Session } from './schemas.ts';

export const forkSessionRoute = defineRoute({
  method: 'post',
  path: '/v1/sessions/{sessionId}/fork',
  operationId: 'forkSession',
  summary: 'Begins a session that goes on after a turn of this one',
  description:
    'The turns up to `at_turn` are shared, and stay where they are: nothing is copied, and the first turn of the fork is the one after it. They are erased with the session that recorded them.',
  access: 'agents:run',
  query: CommonQuery,
  body: ForkBody,
  data: Session,
  errors: SHARED_SESSION_ERRORS,
  once: {
    reserve: async (api, { actor, params, body }) => {
      await prepareFork(api, actor, { session_id: params['sessionId']!, ...body });
      return { id: api.ids.typeId('session') };
    },
  },
  handle: async (api, { actor, params, body, claim }) => {
    const input = { session_id: params['sessionId']!, ...body };
    return { data: presentSession(await forkSession(api, actor, input, claim)) };
  },
});
