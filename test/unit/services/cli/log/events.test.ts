import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { formatEvent } from '../../../../../services/cli/log/events.ts';
import { chainEvents, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { withCiphertexts } from '../../../../../shared/eventlog/encryption/ciphertexts.ts';
import {
  discloseEvents,
  decryptTextsInData,
} from '../../../../../shared/eventlog/encryption/openTexts.ts';
import { commitEventTexts } from '../../../../../shared/eventlog/encryption/sealTexts.ts';
import { AUTHORSHIP } from '../../../../support/builders/authorship.ts';
import { turnStarted } from '../../../../support/builders/events.ts';
import { positionOf } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

test('prints no text that was put in the place of its ciphertext', async () => {
  const { keys } = memoryKeys();
  const stream = 'session-1';
  const decided = [{ id: randomUUID(), ...turnStarted(1) }];
  const { events } = await commitEventTexts(keys, undefined, decided);
  const [encoded] = chainEvents(stream, NO_STREAM, events, AUTHORSHIP).encoded;
  const event = {
    ...withCiphertexts(encoded!, stream),
    stream,
    revision: 0,
    position: positionOf(1),
  };
  const [disclosed] = await discloseEvents(keys, [event]);
  const { input } = disclosed!.data as { input: { sha256: string; text: string } };
  const data = JSON.stringify({ ...(JSON.parse(event.data) as object), input });
  const [forged, genuine] = await decryptTextsInData(keys, [{ ...event, data }, event]);
  const printed = JSON.stringify(formatEvent(forged!));
  expect(printed).toContain('its ciphertext is missing');
  expect(printed).toContain(input.sha256);
  for (const hidden of [JSON.stringify(input.text), '"salt"'])
    expect(printed).not.toContain(hidden);
  expect(JSON.stringify(formatEvent(genuine!))).toContain(JSON.stringify(input.text));
});
