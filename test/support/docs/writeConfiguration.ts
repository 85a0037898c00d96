/** Writes docs/configuration.md anew after a change of an option or of its description. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationPage } from './configurationPage.ts';
import { root } from './projectFiles.ts';

writeFileSync(join(root, 'docs/configuration.md'), configurationPage());
