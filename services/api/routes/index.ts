import type { Route } from '../route.ts';
import { agentRoutes } from './agents.ts';
import { catalogueRoutes } from './catalogue.ts';
import { erasureRoutes } from './erasures.ts';
import { followEventsRoute } from './events.ts';
import { exportRoutes } from './exports.ts';
import { forkSessionRoute } from './forks.ts';
import { healthRoutes } from './health.ts';
import { logRoutes } from './log.ts';
import { openApiRoute } from './openapi.ts';
import { proveSessionRoute } from './proofs.ts';
import { replayRoutes } from './replays.ts';
import { streamReplayRoute } from './replayStream.ts';
import { runAgentRoute } from './runs.ts';
import { sessionRoutes } from './sessions.ts';
import { turnRequestRoutes } from './turnRequests.ts';
import { turnStreamRoutes } from './turnStream.ts';
import { turnRoutes } from './turns.ts';
import { listUsageRoute } from './usage.ts';
import { webhookRoutes } from './webhooks.ts';

const operations: readonly Route[] = [
  ...agentRoutes,
  runAgentRoute,
  ...sessionRoutes,
  forkSessionRoute,
  ...turnStreamRoutes,
  ...turnRoutes,
  ...turnRequestRoutes,
  ...exportRoutes,
  ...erasureRoutes,
  proveSessionRoute,
  ...replayRoutes,
  streamReplayRoute,
  listUsageRoute,
  ...webhookRoutes,
  ...catalogueRoutes,
  followEventsRoute,
  ...logRoutes,
  ...healthRoutes,
];

export const routes: readonly Route[] = [...operations, openApiRoute(operations)];
