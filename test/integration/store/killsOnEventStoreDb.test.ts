/** A few of the kills that `npm run test:faults` does by the dozen, so that `npm test` sees the service die and come back. */
process.env['TURNLOG_KILLS'] = '6';

await import('../../faults/killsOnEventStoreDb.test.ts');
