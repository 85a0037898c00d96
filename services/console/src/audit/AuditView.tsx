import { Page } from '../components/layout.tsx';

export const AuditView = () => <Page title="Audit">{null}</Page>;
