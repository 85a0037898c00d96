import { Page } from '../components/layout.tsx';

export const SystemView = () => <Page title="System">{null}</Page>;
