/**
 * `npm run contract`: writes asyncapi.yaml and the JSON Schemas, unless consumers of the released ones
 * would lose something. `-- --release` also releases them.
 */
import { parseArgs } from 'node:util';
import { CONTRACT_FOLDER, writeContract } from './files.ts';

const { values } = parseArgs({ options: { release: { type: 'boolean', default: false } } });
const violations = writeContract(CONTRACT_FOLDER, values);
if (violations.length > 0) {
  process.stderr.write(
    `Nothing is written. What is released only grows; give the type a new version name (services/followers/relay/README.md):\n  ${violations.join('\n  ')}\n`,
  );
  process.exit(1);
}
