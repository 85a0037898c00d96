/** Codes of reading any stream. */
export const STREAM_ERROR_CODES = ['stream_damaged', 'release_too_old', 'key_missing'] as const;

/** Codes of reading a session. */
export const SESSION_ERROR_CODES = [
  'session_not_found',
  'session_erased',
  ...STREAM_ERROR_CODES,
] as const;

/** Codes of reading a session with the turns that it may share with others. */
export const SHARED_SESSION_ERROR_CODES = [...SESSION_ERROR_CODES, 'origin_erased'] as const;
