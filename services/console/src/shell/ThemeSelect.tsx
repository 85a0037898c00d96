import { SunMoon } from 'lucide-react';
import { useState } from 'react';

const NAME = 'turnlog.theme';
const THEMES = [
  ['', 'System theme'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;

/** Shows the page in the theme that the person chose; the system's before. */
export function applyTheme(): string {
  const theme = localStorage.getItem(NAME) ?? '';
  document.documentElement.className = theme;
  return theme;
}

export function ThemeSelect() {
  const [theme, setTheme] = useState(applyTheme);
  return (
    <label className="flex items-center gap-2.5 rounded-md px-3 py-2 hover:bg-muted">
      <SunMoon className="size-4" aria-hidden />
      <span className="sr-only">Theme</span>
      <select
        className="w-full bg-transparent text-sm"
        value={theme}
        onChange={({ target }) => {
          localStorage.setItem(NAME, target.value);
          setTheme(applyTheme());
        }}
      >
        {THEMES.map(([value, label]) => (
          <option key={value} value={value} className="bg-card">
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
