import { Type, type TString } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';

interface TextLimits {
  /** In characters (code points). */
  maxLength?: number;
  /** In bytes of UTF-8. */
  maxBytes?: number;
  /** The list of the running service that the text is taken from; the document says what it holds. */
  offered?: 'models' | 'tools' | 'components';
  description: string;
  examples?: string[];
}

/**
 * Text that every store keeps unchanged: not empty, well-formed Unicode without NUL (PostgreSQL
 * can't hold U+0000, and a lone surrogate has no UTF-8). The keywords that begin with `x-` are ours;
 * the OpenAPI document says in standard ones what they say (services/api/openapi/jsonSchema.ts).
 */
export const textSchema = ({ maxBytes, offered, ...limits }: TextLimits): TString =>
  Type.String({
    minLength: 1,
    ...limits,
    'x-text': true,
    ...(maxBytes !== undefined && {
      'x-max-bytes': maxBytes,
      'x-max-json-bytes': LIMITS.http.jsonTextBytes,
    }),
    ...(offered && { 'x-offered': offered }),
  });
