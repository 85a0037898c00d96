import { Page } from '../components/layout.tsx';

export const SessionsView = () => <Page title="Sessions">{null}</Page>;
