/** Writes docs/limits.md anew after a change of a limit or of its comment. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { limitsPage } from './limitsPage.ts';
import { root } from './projectFiles.ts';

writeFileSync(join(root, 'docs/limits.md'), limitsPage());
