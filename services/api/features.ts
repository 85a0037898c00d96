import { accountsFeature } from './accounts/routes.ts';
import { agentsFeature } from './agents/routes.ts';
import { catalogueFeature } from './catalogue/routes.ts';
import { chatTokensFeature } from './chatTokens/routes.ts';
import { erasureFeature } from './erasure/routes.ts';
import { exportsFeature } from './exports/routes.ts';
import { feedFeature } from './feed/routes.ts';
import { healthFeature } from './health/routes.ts';
import { createErrorPresenter } from './http/errors/errorPresenter.ts';
import { httpFeature } from './http/errors/errorResponses.ts';
import { mergeFeatures } from './http/feature.ts';
import type { Route } from './http/route.ts';
import { metricsFeature } from './metrics/routes.ts';
import { openApiRoute } from './openapi/routes.ts';
import { proofFeature } from './proof/routes.ts';
import { replaysFeature } from './replays/routes.ts';
import { reportsFeature } from './reports/routes.ts';
import { runsFeature } from './runs/routes.ts';
import { sessionsFeature } from './sessions/routes.ts';
import { transparencyFeature } from './transparency/routes.ts';
import { usageFeature } from './usage/routes.ts';
import { webhooksFeature } from './webhooks/routes.ts';

/** Everything that the API serves, in the order of the OpenAPI document. */
export const apiFeatures = mergeFeatures([
  httpFeature,
  agentsFeature,
  runsFeature,
  chatTokensFeature,
  sessionsFeature,
  exportsFeature,
  erasureFeature,
  proofFeature,
  reportsFeature,
  replaysFeature,
  usageFeature,
  webhooksFeature,
  accountsFeature,
  catalogueFeature,
  feedFeature,
  transparencyFeature,
  healthFeature,
  metricsFeature,
]);

export const routes: readonly Route[] = [...apiFeatures.routes, openApiRoute(apiFeatures)];
export const errorPresenter = createErrorPresenter(apiFeatures);
