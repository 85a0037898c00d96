/** What reading any stream may answer. */
export const STREAM_ERROR_CODES = ['stream_damaged', 'release_too_old', 'key_missing'] as const;

/** What reading a session of the account may answer. */
export const SESSION_ERROR_CODES = [
  'session_not_found',
  'session_erased',
  ...STREAM_ERROR_CODES,
] as const;

/** The same where it goes on in the sessions whose turns it may share. */
export const SHARED_SESSION_ERROR_CODES = [...SESSION_ERROR_CODES, 'origin_erased'] as const;
