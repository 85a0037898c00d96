import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import type { RequestBegunData, RequestEvent } from './events.ts';

export interface RequestCommand {
  type: 'begin_request';
  begun: RequestBegunData;
  /** Earlier releases recorded it as `body_hmac`. */
  content_hmac: string;
}

type RequestState = { status: 'none' } | ({ status: 'begun' } & RequestBegunData);

/**
 * An idempotent request. The first attempt fixes its content and the ids it creates. Later attempts
 * produce no events and use the reserved ids; a different body is rejected.
 */
export const request: Decider<RequestCommand, RequestState, RequestEvent> = {
  initialState: { status: 'none' },
  decide({ begun, content_hmac }, state) {
    if (state.status === 'none') return [{ type: 'request.begun.v1', data: begun }];
    if (state.body_hmac !== begun.body_hmac && state.body_hmac !== content_hmac)
      throw new Rejection('request_differs', 'The request was another one the first time.');
    return [];
  },
  evolve: (_state, { data }) => ({ status: 'begun', ...data }),
};
