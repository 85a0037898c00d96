import { SunMoon } from 'lucide-react';
import { useState } from 'react';
import { getTheme, setTheme, THEMES, type Theme } from './theme.ts';

const LABELS = { system: 'System theme', light: 'Light', dark: 'Dark' } as const;

export function ThemeSelect() {
  const [theme, choose] = useState(getTheme);
  return (
    <label className="flex items-center gap-2.5 rounded-md px-3 py-2 hover:bg-muted">
      <SunMoon className="size-4" aria-hidden />
      <span className="sr-only">Theme</span>
      <select
        className="w-full bg-transparent text-sm"
        value={theme}
        onChange={(event) => {
          const next = event.target.value as Theme;
          setTheme(next);
          choose(next);
        }}
      >
        {THEMES.map((each) => (
          <option key={each} value={each} className="bg-card">
            {LABELS[each]}
          </option>
        ))}
      </select>
    </label>
  );
}
