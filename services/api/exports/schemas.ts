import { Type } from '../../../shared/domain/jsonSchema.ts';
import { EXPORT_FORMATS } from '../../../shared/exports/formats.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { SessionListQuery } from '../sessions/descriptionSchemas.ts';

const format = Type.Enum(EXPORT_FORMATS, {
  description:
    'The content of each line: `openai-chat`, a conversation of a file for fine-tuning; `otel`, the trace of a turn in OTLP/JSON; `inspect`, an EvalLog of Inspect AI; `atif`, a trajectory of Harbor; `events`, an event as it was recorded',
});

export const SessionExportQuery = Type.Object(
  { ...CommonQuery.properties, format },
  { additionalProperties: false },
);

const { limit: _limit, ...filters } = SessionListQuery.properties;

export const ExportQuery = Type.Object(
  {
    ...filters,
    format,
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

export const ExportText = Type.String({
  description: 'JSON documents, one per line; a response that was cut off is incomplete',
});
