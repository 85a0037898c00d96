/** What reading any stream may answer. */
export const STREAM_ERRORS = ['stream_damaged', 'release_too_old', 'key_missing'] as const;

/** What reading a session of the account may answer. */
export const SESSION_ERRORS = ['session_not_found', 'session_erased', ...STREAM_ERRORS] as const;

/** The same where it goes on in the sessions whose turns it may share. */
export const SHARED_SESSION_ERRORS = [...SESSION_ERRORS, 'origin_erased'] as const;
