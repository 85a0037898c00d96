import type { TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';

/**
 * The schema of a success envelope. It is named after its operation, such as `RunAgentResponse200`,
 * so that every generator gives the type the same name. `beside` are members that it may have.
 */
export const envelopeSchema = (
  operationId: string,
  data: TSchema,
  status: 200 | 202,
  beside: Readonly<Record<string, TSchema>> = {},
) =>
  Type.Object(
    {
      success: Type.Literal(true),
      data,
      status: Type.Integer({ const: status, description: 'Mirrors the HTTP status' }),
      ...Object.fromEntries(
        Object.entries(beside).map(([name, schema]) => [name, Type.Optional(schema)]),
      ),
    },
    {
      title: `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Response${status}`,
      description: `The response of \`${operationId}\` with status ${status}`,
    },
  );
