import { Type, type TString } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';

export const KIB = 1_024;

interface TextLimits {
  minLength: number;
  /** In characters (code points). */
  maxLength?: number;
  /** In bytes of UTF-8. */
  maxBytes?: number;
  description: string;
  examples?: string[];
}

/**
 * Text that every store keeps unchanged: well-formed Unicode without NUL (PostgreSQL can't hold
 * U+0000, and a lone surrogate has no UTF-8). `x-text`, `x-max-bytes` and `x-max-json-bytes` are
 * keywords of ours, in OpenAPI as extensions.
 */
export const text = ({ maxBytes, ...limits }: TextLimits): TString =>
  Type.String({
    ...limits,
    'x-text': true,
    ...(maxBytes === undefined
      ? {}
      : { 'x-max-bytes': maxBytes, 'x-max-json-bytes': LIMITS.http.jsonTextBytes }),
  });
