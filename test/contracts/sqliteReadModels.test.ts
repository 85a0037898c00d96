import { sqliteReadModelsFixture } from '../support/sqlite/sqliteReadModels.ts';
import { readModelsContract } from './readModels.ts';

readModelsContract('SQLite', sqliteReadModelsFixture);
