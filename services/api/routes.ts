import type { Route } from './http/route.ts';
import { agentRoutes } from './agents/routes.ts';
import { catalogueRoutes } from './catalogue/routes.ts';
import { erasureRoutes } from './erasure/routes.ts';
import { followEventsRoute } from './feed/routes.ts';
import { exportRoutes } from './exports/routes.ts';
import { forkSessionRoute } from './sessions/forkRoutes.ts';
import { healthRoutes } from './health/routes.ts';
import { logRoutes } from './transparency/routes.ts';
import { openApiRoute } from './openapi/routes.ts';
import { proveSessionRoute } from './transparency/proofRoutes.ts';
import { replayRoutes } from './replays/routes.ts';
import { streamReplayRoute } from './replays/streamRoutes.ts';
import { runAgentRoute } from './runs/routes.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { turnRequestRoutes } from './sessions/turnRequestRoutes.ts';
import { turnStreamRoutes } from './runs/turnStreamRoutes.ts';
import { turnRoutes } from './runs/turnRoutes.ts';
import { listUsageRoute } from './usage/routes.ts';
import { webhookRoutes } from './webhooks/routes.ts';

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
