// Jest reads TypeScript through Node's own type stripping, so tests run exactly the text that
// production runs.
import { stripTypeScriptTypes } from 'node:module';

export default { process: (source) => ({ code: stripTypeScriptTypes(source) }) };
