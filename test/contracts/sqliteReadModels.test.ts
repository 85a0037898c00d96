import { sqliteReadModelsFixture } from '../support/stores/sqlite/sqliteReadModels.ts';
import { readModelsContract } from './readModels.ts';

readModelsContract('SQLite', sqliteReadModelsFixture);
