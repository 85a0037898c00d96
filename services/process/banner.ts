import type { RunningService } from './start.ts';

/** The text that `npm start` prints; its curl command works as pasted. */
export function banner(
  { url, services, dataFolder, firstKey, models }: RunningService,
  isOperatorsKey: boolean,
): string {
  const where = [
    `Turnlog listens on ${url}`,
    dataFolder === undefined ? `Services: ${services.join(', ')}` : `Data folder: ${dataFolder}`,
  ];
  if (!services.includes('api')) return [...where, `Its state: ${url}/health/ready`, ''].join('\n');
  const isKeyShown = firstKey !== undefined && !isOperatorsKey;
  const body = JSON.stringify({ name: 'Echo', instruction: 'Answer briefly.', model: models[0] });
  return [
    ...where,
    ...(isKeyShown ? [`API key of the account "default", shown this once: ${firstKey}`] : []),
    isKeyShown
      ? 'Try it:'
      : 'Try it, with your API key in TURNLOG_API_KEY (another one: npm run cli -- keys issue):',
    `  curl -s '${url}/v1/agents?pretty=true' -H "x-api-key: ${isKeyShown ? firstKey : '$TURNLOG_API_KEY'}" -H 'content-type: application/json' -d '${body}'`,
    '',
  ].join('\n');
}
