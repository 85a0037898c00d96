/**
 * `npm run contract`: writes asyncapi.yaml and the JSON Schemas, unless that would take something
 * from consumers.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import {
  committedSchemas,
  CONTRACT_FOLDER,
  contractViolations,
  generatedContract,
} from './files.ts';

mkdirSync(new URL('schemas/', CONTRACT_FOLDER), { recursive: true });
const violations = contractViolations(committedSchemas());
if (violations.length > 0) {
  process.stderr.write(
    `Nothing is written. A published version only grows; give the type a new version name (services/relay/README.md):\n  ${violations.join('\n  ')}\n`,
  );
  process.exit(1);
}
for (const [file, text] of Object.entries(generatedContract()))
  writeFileSync(new URL(file, CONTRACT_FOLDER), text);
