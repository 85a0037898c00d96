import { Page } from '../components/layout.tsx';

export const ChatView = () => <Page title="Chat">{null}</Page>;
