/** Fixed limits of the audit, part of LIMITS. */
export const AUDIT_LIMITS = {
  audit: {
    /** Reads of one subject by one key are recorded once in this time. */
    foldMs: 3_600_000,
    /** Reads remembered by a process; the read remembered longest is recorded again. */
    foldedReads: 10_000,
  },
} as const;
