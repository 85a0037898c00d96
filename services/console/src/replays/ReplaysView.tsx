import { Page } from '../components/layout.tsx';

export const ReplaysView = () => <Page title="Replays">{null}</Page>;
