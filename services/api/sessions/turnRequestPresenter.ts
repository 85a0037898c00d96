import type { Static } from 'typebox';
import type { RebuiltRequest } from '../../../shared/sessions/turns/turnRequests.ts';
import type { TurnRequests } from './turnRequestSchemas.ts';

/** A request that was built again. */
export const presentRequest = ({
  number,
  purpose,
  round,
  call,
  request,
  request_sha256,
  matches,
}: RebuiltRequest): Static<typeof TurnRequests>[number] => ({
  call: number,
  purpose,
  round,
  request: { ...request },
  request_sha256,
  recorded_sha256: call.request_sha256,
  matches,
});
