import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { AuditData } from '../../../shared/audit/events.ts';
import { type ExportFormat, EXPORT_FORMATS } from '../../../shared/exports/formats.ts';
import { accountStream, sessionStream } from '../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { PageOf } from '../../../shared/ports/readModels.ts';
import { findSessions } from '../../../shared/search/searchSessions.ts';
import type { SessionRow } from '../../../shared/readModels/tables.ts';
import type { RouteContext } from '../context.ts';
import { setNextLink } from '../http/responses/envelope.ts';
import { SHARED_SESSION_ERROR_CODES, STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { parseSessionFilter } from '../sessions/parseSessionFilter.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { SessionListQuery } from '../sessions/descriptionSchemas.ts';
import { serializeSession, serializeSessions } from './serialize.ts';
import { JSON_LINES, PLAIN_TEXT, sendExport, setExportType } from './send.ts';

const Format = Type.Enum(EXPORT_FORMATS, {
  description:
    'The content of each line: `openai-chat`, a conversation of a file for fine-tuning; `otel`, the trace of a turn in OTLP/JSON; `inspect`, an EvalLog of Inspect AI; `atif`, a trajectory of Harbor; `events`, an event as it was recorded',
});

const SessionExportQuery = Type.Object(
  { ...CommonQuery.properties, format: Format },
  { additionalProperties: false },
);

const { limit: _limit, ...filters } = SessionListQuery.properties;

const ExportQuery = Type.Object(
  {
    ...filters,
    format: Format,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.http.pageEntries,
        description: 'The most sessions to answer; all of them when absent',
      }),
    ),
  },
  { additionalProperties: false },
);

const ExportText = Type.String({
  description: 'JSON documents, one per line; a response that was cut off is incomplete',
});

const exported = (subject: string, format: ExportFormat): AuditData => ({
  action: 'export',
  subject,
  detail: `format=${format}`,
});

const exportSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/export',
  operationId: 'exportSession',
  summary: 'Exports a session in an external format, as JSON lines',
  description:
    'The recorded turns that have ended. An unchanged session yields the same bytes. An export that fails is cut off: check that it is complete. Each export is recorded in the account’s audit before it is sent.',
  access: 'sessions:read',
  query: SessionExportQuery,
  data: ExportText,
  media: JSON_LINES,
  alternateMedia: PLAIN_TEXT,
  errors: ['quota_exceeded', ...SHARED_SESSION_ERROR_CODES],
  handle: async (api, { actor, params, query: { format } }, ctx) => {
    const sessionId = params['sessionId']!;
    const options = { api, account_id: actor.account_id, format };
    const audited = exported(sessionStream(sessionId), format);
    await sendExport({ api, actor, ctx, setHeaders: setExportType }, async () => ({
      audited,
      chunks: serializeSession(options, sessionId),
    }));
    return undefined;
  },
});

type SessionQuery = Static<typeof ExportQuery>;

const listExportedSessions = (
  api: RouteContext,
  account_id: string,
  { format: _format, ...query }: SessionQuery,
  signal: AbortSignal,
): Promise<PageOf<SessionRow>> =>
  findSessions(
    api,
    account_id,
    {
      limit: query.limit ?? LIMITS.export.sessions,
      bytes: LIMITS.http.batchBytes,
      ...(query.after === undefined ? {} : { after: query.after }),
      ...parseSessionFilter(query),
    },
    signal,
  );

/**
 * The ids of the sessions of all pages, or of the first page where the query has a limit. For sessions
 * without text, only the signal ends it early.
 */
async function* sessionIds(
  first: PageOf<SessionRow>,
  query: SessionQuery,
  read: (query: SessionQuery) => Promise<PageOf<SessionRow>>,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  for (let page = first; ;) {
    for (const { session_id } of page.rows) {
      signal.throwIfAborted();
      yield session_id;
    }
    const after = page.rows.at(-1)?.session_id;
    if (!page.more || after === undefined || query.limit !== undefined) return;
    page = await read({ ...query, after });
  }
}

const exportSessionsRoute = defineRoute({
  method: 'get',
  path: '/v1/export',
  operationId: 'exportSessions',
  summary: 'Exports the sessions that match all filters, as JSON lines',
  description:
    'The sessions in list order, each as in its own export: all of them, or with `limit` a page, whose `Link` is the next page. Sessions that are erased meanwhile are omitted. An export that fails is cut off: continue with `after` set to the last session received. Each export is recorded in the account’s audit before it is sent.',
  access: 'sessions:read',
  query: ExportQuery,
  data: ExportText,
  media: JSON_LINES,
  alternateMedia: PLAIN_TEXT,
  errors: ['quota_exceeded', 'origin_erased', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, query }, ctx) => {
    const { account_id } = actor;
    const options = { api, account_id, format: query.format };
    const audited = exported(accountStream(account_id), query.format);
    await sendExport({ api, actor, ctx, setHeaders: setExportType }, async (signal) => {
      const read = (page: SessionQuery) => listExportedSessions(api, account_id, page, signal);
      const first = await read(query);
      const last = first.rows.at(-1);
      if (query.limit !== undefined && first.more && last) setNextLink(ctx, last.session_id);
      const ids = sessionIds(first, query, read, signal);
      return { audited, chunks: serializeSessions(options, ids) };
    });
    return undefined;
  },
});

export const exportsFeature = defineFeature({
  routes: [exportSessionRoute, exportSessionsRoute],
  tags: { export: 'Sessions in external formats' },
});
