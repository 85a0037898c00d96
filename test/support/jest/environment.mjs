// For every process that tests start. Jest gives test files a copy of the environment, which does
// not reach those.
import { fileURLToPath } from 'node:url';

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/turnlog', import.meta.url));

export default function prepareEnvironment() {
  // As npm start does: most of what a short process does is to load its code.
  process.env.NODE_COMPILE_CACHE ??= CACHE;
  // A broker that lives for seconds is not worth what Java's second compiler costs.
  process.env.JDK_JAVA_OPTIONS ??= '-XX:TieredStopAtLevel=1';
}
