import type { RunningService } from './start.ts';

interface BannerOptions {
  /** True if the operator chose the first key with BOOTSTRAP_API_KEY. */
  isOperatorsKey: boolean;
  /** True for text, false for a line of JSON like those of the log. */
  isTerminal: boolean;
  now: Date;
}

/** The API key of the service, or where it is. */
function describeKey(firstKey: string | undefined, isOperatorsKey: boolean): string {
  if (firstKey === undefined)
    return 'API key: the one of the first start, which printed it or took it from BOOTSTRAP_API_KEY. Issue another one: npm run cli -- keys issue';
  return isOperatorsKey
    ? 'API key of the account "default": the value of BOOTSTRAP_API_KEY'
    : `API key of the account "default", shown this once: ${firstKey}`;
}

/** A curl command that works as pasted, once the key is in TURNLOG_API_KEY if it is not part of it. */
function exampleRequest({ url, models }: RunningService, key: string): string {
  const body = JSON.stringify({ name: 'Echo', instruction: 'Answer briefly.', model: models[0] });
  return `curl -s '${url}/v1/agents?pretty=true' -H "x-api-key: ${key}" -H 'content-type: application/json' -d '${body}'`;
}

/** The last text of a start, for standard output: the address, the API key, and a command to try. */
export function formatBanner(
  service: RunningService,
  { isOperatorsKey, isTerminal, now }: BannerOptions,
): string {
  const { url, services, dataFolder, firstKey, consoleLink } = service;
  const title = `Turnlog listens on ${url}`;
  const servesApi = services.includes('api');
  const newKey = isOperatorsKey ? undefined : firstKey;
  const keyText = describeKey(firstKey, isOperatorsKey);
  const command = exampleRequest(service, newKey ?? '$TURNLOG_API_KEY');
  if (!isTerminal)
    return `${JSON.stringify({
      level: 'info',
      time: now.toISOString(),
      url,
      services,
      data_folder: dataFolder,
      ...(servesApi
        ? { api_key: newKey, about_api_key: keyText, try: command, console: consoleLink }
        : { try: `curl -s ${url}/health/ready` }),
      msg: title,
    })}\n`;
  return [
    title,
    dataFolder === undefined ? `Services: ${services.join(', ')}` : `Data folder: ${dataFolder}`,
    ...(servesApi
      ? [
          keyText,
          newKey === undefined ? 'Try it, with the key in TURNLOG_API_KEY:' : 'Try it:',
          `  ${command}`,
          ...(consoleLink === undefined
            ? []
            : [`Console, with a link that signs in once within 15 minutes: ${consoleLink}`]),
        ]
      : [`Its state: ${url}/health/ready`]),
    '',
  ].join('\n');
}
