import { presentHealth } from './presenter.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { LIVE, Live, Ready } from './schemas.ts';

const liveRoute = defineRoute({
  method: 'get',
  path: '/health/live',
  operationId: 'isLive',
  summary: 'Responds while the process is up',
  access: 'open',
  query: CommonQuery,
  data: Live,
  errors: [],
  handle: () => Promise.resolve({ data: LIVE }),
});

const readyRoute = defineRoute({
  method: 'get',
  path: '/health/ready',
  operationId: 'isReady',
  summary: 'Responds with 200 when requests can be served',
  access: 'open',
  query: CommonQuery,
  data: Ready,
  errors: ['store_unavailable'],
  handle: async ({ health }) => ({ data: presentHealth(await health()) }),
});

export const healthFeature = defineFeature({
  routes: [liveRoute, readyRoute],
  tags: { health: 'Health of the process' },
});
