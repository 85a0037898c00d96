/** Someone with write access to the SQLite read models changes rows. */
import { changedRowsOnSqlite, changedRowsSuite } from '../../support/stores/forger/changedRows.ts';

changedRowsSuite(changedRowsOnSqlite);
