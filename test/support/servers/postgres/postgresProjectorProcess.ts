/**
 * A projector as a process of its own: `<data folder> <database URL>`. Writes a line with each
 * state, and runs until it is killed.
 */
import { writeSync } from 'node:fs';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import { startPostgresProjector } from './postgresProjector.ts';

const [folder = '', databaseUrl = ''] = process.argv.slice(2);
startPostgresProjector({
  log: openSqliteEventLog({ folder }),
  databaseUrl,
  onState: (state) => void writeSync(1, `${state}\n`),
});
