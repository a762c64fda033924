/** Light or dark: as the system says, unless somebody has chosen here. */
import { useSyncExternalStore } from "react"

export type Theme = "system" | "light" | "dark"
const key = "purser-theme"

const stored = (): Theme => {
  const value = localStorage.getItem(key)
  return value === "light" || value === "dark" ? value : "system"
}
const listeners = new Set<() => void>()

const apply = () => {
  const theme = stored()
  if (theme === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = theme
}

/** Applies what was chosen. */
export const startTheme = (): void => apply()

/** Chooses. */
export const chooseTheme = (theme: Theme): void => {
  if (theme === "system") localStorage.removeItem(key)
  else localStorage.setItem(key, theme)
  apply()
  for (const listener of listeners) listener()
}

/** What is chosen. */
export const useTheme = (): Theme =>
  useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, stored, () => "system")
