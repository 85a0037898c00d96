/** How bundles are kept: as tar archives. */
export { readTar as readBundleFile } from '../../infra/tar/readTar.ts';
export { writeTar as writeBundleFile } from '../../infra/tar/writeTar.ts';
