import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../shared/limits.ts';
import { countDeliveredPiece, countDeliveredHeaders } from './uncountedBytes.ts';

class TooManyInformationalResponses extends Error {
  readonly code = 'TOO_MANY_INFORMATIONAL_RESPONSES';
}

/**
 * An undici interceptor that ends a request, and closes its connection, after too many informational
 * responses (status 1xx). A server could otherwise send them at full speed until the deadline, and
 * parsing them takes the event loop. It also counts what is delivered, for buildLimitedConnector.
 */
export const limitInformationalResponses: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) => (options, handler) => {
    let count = 0;
    return dispatch(options, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (...upgrade) => handler.onRequestUpgrade?.(...upgrade),
      onResponseStart(controller, status, ...response) {
        countDeliveredHeaders();
        if (status < 200 && (count += 1) > LIMITS.web.informationalResponses)
          controller.abort(new TooManyInformationalResponses());
        else handler.onResponseStart?.(controller, status, ...response);
      },
      onResponseData(controller, chunk) {
        countDeliveredPiece(chunk.length);
        handler.onResponseData?.(controller, chunk);
      },
      onResponseEnd(controller, trailers) {
        countDeliveredHeaders();
        handler.onResponseEnd?.(controller, trailers);
      },
      onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
    });
  };
