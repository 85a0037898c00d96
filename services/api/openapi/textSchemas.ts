import { Type, type TString } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';

interface TextLimits {
  /** In characters (code points). */
  maxLength?: number;
  /** In bytes of UTF-8. */
  maxBytes?: number;
  /** The list of the running service that has the allowed values. */
  offered?: 'models' | 'tools' | 'components';
  description: string;
  examples?: string[];
}

/**
 * Text that every store keeps unchanged: not empty, well-formed Unicode without NUL (PostgreSQL
 * can't store U+0000, and a lone surrogate has no UTF-8). Keywords that begin with `x-` are Turnlog's;
 * services/api/openapi/jsonSchema.ts replaces them by standard ones.
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
