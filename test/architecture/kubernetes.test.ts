import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { ConfigSchema, parseConfig } from '../../shared/lib/config/config.ts';

const folder = new URL('../../infra/deploy/kubernetes/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, folder), 'utf8');
const files = readdirSync(folder).filter((file) => file !== 'kustomization.yaml');
const documents: any[] = files.flatMap((file) => {
  const parsed = parseAllDocuments(read(file), { uniqueKeys: true });
  if (!Array.isArray(parsed)) throw new Error(`${file} is empty`);
  for (const document of parsed) if (document.errors[0]) throw document.errors[0];
  return parsed.map((document) => document.toJS() as unknown);
});
const ofKind = (kind: string): any[] => documents.filter((document) => document.kind === kind);
const named = (kind: string, name: string): any =>
  ofKind(kind).find((document) => document.metadata.name === name);
const deployments = ofKind('Deployment').map((deployment) => {
  const pod = deployment.spec.template.spec;
  return [
    deployment.metadata.name as string,
    {
      deployment,
      pod,
      container: pod.containers[0],
      labels: deployment.spec.template.metadata.labels,
    },
  ] as const;
});
/** Where a container has the files of secrets. */
const secretMounts = (pod: any, container: any): string[] =>
  container.volumeMounts
    .filter((mount: any) => pod.volumes.find(({ name }: any) => name === mount.name).secret)
    .map((mount: any) => mount.mountPath);
const seconds = (milliseconds: string): number => Number(milliseconds) / 1_000;

test('kustomize applies every manifest, and each kind and name is there once', () => {
  expect(
    (parse(read('kustomization.yaml')) as { resources: string[] }).resources.toSorted(),
  ).toEqual(files.toSorted());
  const names = documents.map(
    ({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`,
  );
  expect(names).toEqual([...new Set(names)]);
  expect(deployments.map(([name]) => name).toSorted()).toEqual(['api', 'projector', 'relay']);
});

test('the service sends requests to the port of the API pods', () => {
  const { spec } = named('Service', 'api');
  const api = deployments.find(([name]) => name === 'api')![1];
  expect(api.labels).toEqual(spec.selector);
  expect(api.container.ports.map((port: any) => port.name)).toContain(spec.ports[0].targetPort);
});

describe.each(deployments)(
  'the deployment of %s',
  (name, { deployment, pod, container, labels }) => {
    test('starts the one service and selects its own pods', () => {
      expect(container.args).toEqual(['--services', name]);
      expect(deployment.spec.selector.matchLabels).toEqual(labels);
      expect(pod.topologySpreadConstraints[0].labelSelector.matchLabels).toEqual(labels);
    });

    test('asks whether it lives and whether it is ready, on a port that it has', () => {
      const [live, ready] = ['live', 'ready'].map((path) => ({
        path: `/health/${path}`,
        port: 'http',
      }));
      expect(container.livenessProbe.httpGet).toEqual(live);
      // All pods of the API lose a shared server together: out of the service they could not even
      // say so.
      expect([container.startupProbe.httpGet, container.readinessProbe.httpGet]).toEqual(
        name === 'api' ? [ready, live] : [live, ready],
      );
      expect(container.ports).toEqual([{ name: 'http', containerPort: parseConfig({}).PORT }]);
    });

    test('has time to shut down in order before it is killed', () => {
      const lastWords = 2;
      const { SHUTDOWN_GRACE_MS, DRAIN_MS } = named('ConfigMap', 'turnlog').data;
      const drain = name === 'api' ? seconds(DRAIN_MS) : 0;
      // What every node has to hear takes some seconds.
      expect(seconds(DRAIN_MS)).toBeGreaterThanOrEqual(5);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(
        drain + seconds(SHUTDOWN_GRACE_MS) + lastWords,
      );
    });

    test('is not root, can write to its volumes only, and has no capability', () => {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.volumeMounts.map((mount: any) => mount.name)).toEqual(
        pod.volumes.map((volume: any) => volume.name),
      );
      expect(pod.automountServiceAccountToken).toBe(false);
      const user = /^ARG USER_ID=(\d+)$/m.exec(
        readFileSync(new URL('../Dockerfile', folder), 'utf8'),
      )?.[1];
      expect([pod.securityContext.runAsUser, pod.securityContext.runAsGroup]).toEqual([
        Number(user),
        Number(user),
      ]);
    });

    test('states what it needs and what it may use at the most', () => {
      for (const bound of [container.resources.requests, container.resources.limits]) {
        expect(bound).toEqual({
          cpu: expect.stringMatching(/^\d+m?$/),
          memory: expect.stringMatching(/^\d+Mi$/),
        });
      }
    });

    test('takes secrets from the secret, and only options that there are', () => {
      for (const variable of container.env.filter(
        ({ name: option }: any) => !option.endsWith('_FILE'),
      ))
        expect(variable.valueFrom.secretKeyRef).toMatchObject({
          name: 'turnlog',
          key: variable.name,
        });
      for (const { value } of container.env.filter(({ name: option }: any) =>
        option.endsWith('_FILE'),
      ))
        expect(secretMounts(pod, container)).toContain(posix.dirname(value));
      expect(container.envFrom).toEqual([{ configMapRef: { name: 'turnlog' } }]);
      const options = [
        ...container.env.map((variable: any) => variable.name as string),
        ...Object.keys(named('ConfigMap', 'turnlog').data),
      ];
      expect(options.filter((option) => !Object.hasOwn(ConfigSchema.properties, option))).toEqual(
        [],
      );
    });

    test('has the master keys where the option names them, and nobody else may read them', () => {
      const mount = container.volumeMounts.find((found: any) => found.name === 'keys');
      const { secret } = pod.volumes.find((found: any) => found.name === 'keys');
      expect(named('ConfigMap', 'turnlog').data.MASTER_KEY_FILE).toBe(
        `${mount.mountPath}/master.key`,
      );
      expect([mount.readOnly, secret]).toEqual([
        true,
        { secretName: 'turnlog-keys', defaultMode: 0o440 },
      ]);
      expect(pod.securityContext.fsGroup).toBe(pod.securityContext.runAsGroup);
    });

    test('may lose a pod to a disruption, and never all of them', () => {
      const { spec } = named('PodDisruptionBudget', name);
      expect(spec.selector.matchLabels).toEqual(labels);
      expect(spec.minAvailable).toBeGreaterThan(0);
      expect(spec.minAvailable).toBeLessThan(deployment.spec.replicas);
    });
  },
);
