import { ConfigSchema } from '../../../shared/lib/config/config.ts';

/**
 * The environment of a process under test: this one's, without Turnlog's own options, because some
 * of them name the servers that suites are to use, and without Node's. The console is off, because a
 * service would build it.
 */
export const plainEnvironment = (): Record<string, string | undefined> => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !Object.hasOwn(ConfigSchema.properties, name)),
  ),
  NODE_OPTIONS: '',
  CONSOLE: 'off',
});
