import { runServer } from './server/run.ts';

await runServer();
