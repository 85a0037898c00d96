import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { openTurnlog } from '../../../services/compose/service.ts';
import { startServing } from '../../../services/server/start.ts';
