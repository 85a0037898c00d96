/** Runs a node as a process of its own, for tests that kill it: prints its connection string once it listens. */
import { parseArgs } from 'node:util';
import { startEventStoreDbNode } from './index.ts';

const { values } = parseArgs({ options: { folder: { type: 'string' }, port: { type: 'string', default: '0' } } });
if (values.folder === undefined) throw new Error('usage: node test/support/eventstoredb-node/main.ts --folder <folder> [--port <port>]');
const node = await startEventStoreDbNode({ folder: values.folder, port: Number(values.port) });
process.stdout.write(`${node.connectionString}\n`);
process.once('SIGTERM', () => void node.close());
