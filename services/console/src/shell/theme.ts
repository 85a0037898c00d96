const NAME = 'turnlog.theme';
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** The theme that the person chose, `system` before. */
export const getTheme = (): Theme =>
  THEMES.find((theme) => theme === localStorage.getItem(NAME)) ?? 'system';

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

/** Shows the page in the chosen theme, and follows the system where that was chosen. */
export function applyTheme(): void {
  const show = (): void => {
    const theme = getTheme();
    const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches);
    document.documentElement.classList.toggle('dark', isDark);
  };
  show();
  prefersDark.addEventListener('change', show);
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(NAME, theme);
  const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches);
  document.documentElement.classList.toggle('dark', isDark);
}
