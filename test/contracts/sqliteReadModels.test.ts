import { sqliteReadModelsFixture } from '../support/sqliteReadModels.ts';
import { readModelsContract } from './readModels.ts';

readModelsContract('SQLite', sqliteReadModelsFixture);
