import { Type } from '../../../shared/domain/jsonSchema.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Metrics } from '../../../shared/health/metrics.ts';
import type { ProcessContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const TYPES = {
  text: 'text/plain; version=0.0.4',
  openmetrics: 'application/openmetrics-text; version=1.0.0',
} as const;
const MEDIA = {
  text: `${TYPES.text}; charset=utf-8`,
  openmetrics: `${TYPES.openmetrics}; charset=utf-8`,
} as const;

/** The media type out of several that a client prefers, the first one where it has no preference. */
type Accepts = (...types: string[]) => string | false;

/** The text format, unless the client accepts OpenMetrics by name. */
const formatFor = (accepts: Accepts) =>
  accepts(TYPES.text, TYPES.openmetrics) === TYPES.openmetrics ? 'openmetrics' : 'text';

/** Renders the metrics of a process, also while its health is unknown. */
export async function renderMetrics(
  { metrics, health }: Pick<ProcessContext, 'health'> & { metrics: Metrics },
  accepts: Accepts,
): Promise<{ media: string; bytes: Uint8Array }> {
  const format = formatFor(accepts);
  const latestHealth = await health().catch(() => undefined);
  return { media: MEDIA[format], bytes: Buffer.from(await metrics.render(format, latestHealth)) };
}

const metricsRoute = defineRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Returns the metrics of this process for Prometheus',
  description:
    'The metrics of the whole process, in the text format of Prometheus or in OpenMetrics, as `Accept` prefers. Where `METRICS_PORT` is set they are served at that port alone, and this is 404.',
  access: 'metrics:read',
  query: CommonQuery,
  media: MEDIA.text,
  alternateMedia: MEDIA.openmetrics,
  data: Type.String({ title: 'Metrics', description: 'One sample per line' }),
  errors: ['not_found'],
  handle: (api, _request, ctx) => {
    if (api.hasMetricsPort)
      throw new TurnlogError('not_found', 'The metrics are served at METRICS_PORT.');
    return renderMetrics(api, ctx.accepts.bind(ctx));
  },
});

export const metricsFeature = defineFeature({
  routes: [metricsRoute],
  tags: { metrics: 'Metrics of the process' },
});
