import { Page } from '../components/layout.tsx';

export const AgentsView = () => <Page title="Agents">{null}</Page>;
