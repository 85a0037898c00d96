import { Page } from '../components/layout.tsx';

export const UsageView = () => <Page title="Usage">{null}</Page>;
