import { View } from '../components/layout.tsx';

export const AuditView = () => <View title="Audit">{null}</View>;
