import { View } from '../components/layout.tsx';

export const ChatView = () => <View title="Chat">{null}</View>;
