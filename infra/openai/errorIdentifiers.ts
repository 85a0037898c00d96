import type * as OpenAi from 'openai';

/**
 * Codes and types of errors of OpenAI-compatible servers. Providers quote prompts in their messages
 * and other members, so the log holds only these.
 */
const IDENTIFIERS: ReadonlySet<unknown> = new Set([
  'account_deactivated',
  'api_error',
  'array_above_max_length',
  'authentication_error',
  'billing_hard_limit_reached',
  'billing_not_active',
  'content_filter',
  'content_policy_violation',
  'context_length_exceeded',
  'engine_overloaded',
  'insufficient_quota',
  'integer_above_max_value',
  'internal_server_error',
  'invalid_api_key',
  'invalid_image_format',
  'invalid_json',
  'invalid_json_schema',
  'invalid_organization',
  'invalid_prompt',
  'invalid_request_error',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'model_not_found',
  'not_found_error',
  'overloaded_error',
  'permission_error',
  'rate_limit_error',
  'rate_limit_exceeded',
  'server_error',
  'string_above_max_length',
  'timeout',
  'tokens_exceeded_error',
  'unknown_parameter',
  'unsupported_parameter',
  'unsupported_value',
]);

/** The members of a request that an error may name. */
const PARAMETER =
  /^(?:max_completion_tokens|max_tokens|messages|model|response_format|stream|stream_options|temperature|tools)(?=$|[.[])/;

/**
 * An error response for the log: its status, and the identifiers among its type, code and parameter
 * that this file lists, such as `400 invalid_request_error unsupported_value temperature`.
 */
export function identifiersOf({ status, type, code, param }: OpenAi.APIError): string {
  const parameter = typeof param === 'string' ? PARAMETER.exec(param)?.[0] : undefined;
  const known = [type, code].filter((name) => IDENTIFIERS.has(name));
  return [status, ...new Set(known), parameter].filter((part) => part !== undefined).join(' ');
}
