/**
 * `npm run projections`: records what the projections make of one event of each type. Refuses where
 * they make other rows of the same events and PROJECTION_LOGIC was not raised: databases of the
 * release before would keep the older rows.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { currentRecord, differences, type ProjectionRecord } from './projectionRecord.ts';

const FILE = new URL('../../fixtures/projections.json', import.meta.url);

const recorded = JSON.parse(await readFile(FILE, 'utf8')) as ProjectionRecord;
const now = currentRecord();
const { raiseProjectionLogicFor } = differences(recorded, now);
if (raiseProjectionLogicFor.length > 0)
  throw new Error(
    `raise PROJECTION_LOGIC in shared/readModels/version.ts first; these have changed:\n${raiseProjectionLogicFor.join('\n')}`,
  );
await writeFile(FILE, `${JSON.stringify(now, null, 2)}\n`);
