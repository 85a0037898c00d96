import { storeUnavailable } from '../../../shared/errors.ts';
import type { RelayHealth } from '../../../shared/queries/health.ts';
import { defineRoute } from '../route.ts';
import { CommonQuery } from '../schemas/common.ts';
import { Live, Ready } from '../schemas/health.ts';

const liveRoute = defineRoute({
  method: 'get',
  path: '/health/live',
  operationId: 'isLive',
  summary: 'Answers while the process is up',
  access: 'open',
  query: CommonQuery,
  data: Live,
  errors: [],
  handle: () => Promise.resolve({ data: { status: 'live' as const } }),
});

const presentRelay = ({ state, position, lag_ms }: RelayHealth) => ({ state, ...(position !== undefined && { position }), lag_ms });

const readyRoute = defineRoute({
  method: 'get',
  path: '/health/ready',
  operationId: 'isReady',
  summary: 'Answers 200 when requests can be served',
  access: 'open',
  query: CommonQuery,
  data: Ready,
  errors: ['store_unavailable'],
  handle: async ({ health }) => {
    const { ready, reason, projection, runs_in_flight, relay } = await health();
    if (!ready) throw storeUnavailable(reason ?? 'The service is not ready.');
    // Why a stream was parked may quote its content, so that stays in the log.
    const parked_streams = projection.parked_streams.map(({ stream, revision, event_type }) => ({ stream, revision, event_type }));
    const status = parked_streams.length > 0 || relay?.state === 'retrying' ? ('degraded' as const) : ('ready' as const);
    return { data: { status, projection: { caught_up: projection.caught_up, parked_streams }, runs_in_flight, ...(relay && { relay: presentRelay(relay) }) } };
  },
});

export const healthRoutes = [liveRoute, readyRoute];
