/** Who recorded an event, and when, where a test does not care. */
export const AUTHORSHIP = {
  account_id: 'acct_1',
  key_id: 'key_1',
  request_id: 'test',
  causation_id: 'test',
  recorded_at: '2026-01-01T00:00:00.000Z',
};
